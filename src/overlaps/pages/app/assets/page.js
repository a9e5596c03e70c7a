// What only a browser knows: whether its pages are dark, the value of a slider while it moves, and where it is.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  overlaps: {
    dark: () => window.matchMedia("(prefers-color-scheme: dark)").matches,
    shown: (value) => String(value),
    // The door of a room leads to its last state, and so does the address, for a reload and for the way back.
    remembered: (link) => {
      if (!link || link === "#") return window.dash_clientside.no_update;
      if (new URL(link, location.href).pathname === location.pathname) history.replaceState(history.state, "", link);
      return link;
    },
    // The door of the room that is open says so to those who do not see the line under it.
    here: (...names) => {
      document.querySelectorAll("#doors a").forEach((door, i) => {
        if (names[i] === "here") door.setAttribute("aria-current", "page");
        else door.removeAttribute("aria-current");
      });
      return window.dash_clientside.no_update;
    },
  },
});
