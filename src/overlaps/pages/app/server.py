"""The server: the page, who may talk to it, and its rooms.

It listens on loopback unless told otherwise, and then takes requests only for that host and from that page: a site that
a visitor has open elsewhere cannot ask it anything.
"""

from __future__ import annotations

import base64
import logging
import secrets
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...interface.errors import InputError, MissingExtraError
from .choice import table_of

if TYPE_CHECKING:
    from dash import Dash

    from .room import Room

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 30 * 2**20  # bytes of a request: a file of 20 MB in base64


class Page:
    """The Dash application `app`, its rooms, its processes and the files that were dropped; `close` ends them."""

    def __init__(self, host: str = "127.0.0.1", *, processes: int = 2, seconds: float | None = None) -> None:
        try:
            import dash
        except ImportError:
            raise MissingExtraError("app: there is no dash", "pip install 'overlaps[app]'") from None
        from .data_room import Data
        from .explore_room import Explore
        from .jobs import SECONDS, Jobs, Task
        from .outliers_room import Outliers
        from .papers_room import Papers
        from .uploads import Uploads
        from .warming import THEORY, parts, warm

        self.jobs = Jobs(processes, seconds or SECONDS, prepare=[Task(part, argument) for part, argument in parts()])
        self.uploads = Uploads()
        self.rooms: list[Room] = [kind(self.jobs, self.uploads) for kind in (Explore, Data, Outliers, Papers)]
        # all of it from this server: no content network, no telemetry
        self.app = dash.Dash(
            "overlaps.pages.app",
            title="overlaps",
            update_title="",
            suppress_callback_exceptions=True,
            serve_locally=True,
            meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
            index_string=INDEX,
        )
        self.app.layout = self._frame  # called for each visitor
        self._enter()
        for room in self.rooms:
            room.register(self.app)
        self.app.server.config["MAX_CONTENT_LENGTH"] = LARGEST
        _guard(self.app, host)
        threading.Thread(target=warm, args=(lambda: self.jobs.prepared >= THEORY,), daemon=True).start()

    def close(self) -> None:
        """End the processes and remove the files."""
        self.jobs.close()
        self.uploads.close()

    def _frame(self) -> Any:
        """The page around all rooms. A visitor is one load of the page: a reload or a second tab is another one."""
        from dash import dcc, html

        from .controls import upload

        restore = upload("restore", "restore from TOML", 20_000)
        doors = [dcc.Link(room.name, id=f"door-{room.key}", href=room.path) for room in self.rooms]
        return html.Div(
            [
                dcc.Location(id="url", refresh=False),
                dcc.Store(id="visitor", data=secrets.token_hex(16)),
                dcc.Store(id="dark"),
                html.Nav(
                    [html.Strong("overlaps"), html.Div(doors, id="doors", className="doors"), restore],
                    className="rooms",
                ),
                html.Main([html.Div(id="notice", className="refused", role="alert"), html.Div(id="room")]),
            ],
            className="page",
        )

    def _enter(self) -> None:
        """Add the callbacks that open a room in a state, from a link or from a file."""
        from dash import ClientsideFunction, Input, Output, no_update

        rooms = {room.path: room for room in self.rooms}
        app: Dash = self.app
        app.clientside_callback(
            ClientsideFunction("overlaps", "dark"), Output("dark", "data"), Input("url", "pathname")
        )

        @app.callback(
            Output("room", "children"), Output("notice", "children"),
            *(Output(f"door-{room.key}", "className") for room in self.rooms),
            Input("url", "pathname"), Input("url", "search"),
        )  # fmt: skip
        def enter(path: str | None, search: str | None) -> Any:
            """The room of an address, in the state that the address says."""
            room = rooms.get(path or "/")
            doors = ["here" if r is room else "door" for r in self.rooms]
            if room is None:
                return [], "There is no such room.", *doors
            try:
                return room.body(room.choice.from_link(search or "")), "", *doors
            except InputError as error:
                return room.body(room.choice()), f"This link cannot be restored. {error}", *doors

        app.clientside_callback(
            ClientsideFunction("overlaps", "here"),
            Output("doors", "title"),
            [Input(f"door-{room.key}", "className") for room in self.rooms],
        )

        @app.callback(
            Output("url", "pathname"), Output("url", "search"), Output("notice", "children", allow_duplicate=True),
            Input("restore", "contents"), prevent_initial_call=True,
        )  # fmt: skip
        def restore(contents: str | None) -> Any:
            """The address of the state of a TOML file."""
            if not contents:
                return no_update, no_update, no_update
            try:
                text = base64.b64decode(contents.partition(",")[2]).decode("utf-8", "replace")
                tables = table_of(text)
                room = next((room for room in self.rooms if room.key in tables), None)
                if room is None:
                    known = ", ".join(f"[{room.key}]" for room in self.rooms)
                    raise InputError(f"TOML: expected one of the tables {known}, as this page writes them")
                return room.path, room.choice.from_toml(text).to_link(), ""
            except (InputError, ValueError) as error:
                return no_update, no_update, f"This file cannot be restored. {error}"


INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


def _guard(app: Dash, host: str) -> None:
    """Refuse what was not asked by this page, and let browsers load and run nothing from elsewhere."""
    from flask import abort, request

    # Dash starts itself by one inline script, allowed by its hash; its components and Plotly add style elements to the
    # page, which can be allowed as a whole only.
    scripts = " ".join(["'self'", *(f"'{hashed}'" if "'" not in hashed else hashed for hashed in app.csp_hashes())])
    policy = (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    @app.server.before_request
    def only_from_here() -> None:
        name = urlsplit(f"//{request.host}").hostname
        origin = request.headers.get("Origin")
        if host in LOOPBACK and name not in LOOPBACK:
            abort(403)
        if origin is not None and urlsplit(origin).netloc != request.host:
            abort(403)

    @app.server.after_request
    def only_our_own(response: Any) -> Any:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response


def serve(port: int = 8050, host: str = "127.0.0.1") -> None:
    """Serve the page until interrupted."""
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # requests are many and of no interest
    page = Page(host)
    try:
        server = make_server(host, port, page.app.server, threaded=True)
    except (OSError, SystemExit):
        page.close()
        raise InputError(f"port: {port} of {host} cannot be used, by another program perhaps; name another") from None
    shown = f"[{host}]" if ":" in host else host
    print(f"overlaps is at http://{shown}:{server.server_port}/ (Ctrl-C ends it)", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # files that were dropped do not outlive the server
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the page is closed; links and TOML files that it gave restore its states") from None
    finally:
        page.close()
