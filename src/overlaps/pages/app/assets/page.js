// What only a browser knows: whether its pages are dark, and the value of a slider while it moves.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  overlaps: {
    dark: () => window.matchMedia("(prefers-color-scheme: dark)").matches,
    shown: (value) => String(value),
  },
});
