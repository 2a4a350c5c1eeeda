"""Contents of a notebook: figures of matplotlib, and pages of HTML."""

import io
from collections.abc import Callable
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from twin.base.atomic_file import atomic_write

FRAME = '<iframe {} style="width: 100%; height: 480px; border: 0" title="{}"></iframe>'


class Plot(Figure):
    """Matplotlib figure that a notebook shows exactly once, with pyplot and without; `savefig` writes it."""

    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # pyright: ignore[reportArgumentType]
        FigureCanvasAgg(self)

    def png(self, dpi: float = 100) -> bytes:
        """Return the picture on a white ground, which is legible on a dark page."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=dpi, facecolor="white")
        return file.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()


class Page:
    """Page of HTML that needs no network; a notebook shows it in a frame.

    Attributes:
        html: the page.
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: page of {len(self.html) / 1e6:.2f} MB>"

    def _repr_html_(self) -> str:
        return FRAME.format(f'srcdoc="{escape(self.html)}"', type(self).__name__.lower())

    def save(self, path: str | Path) -> None:
        """Write the page atomically."""
        with atomic_write(path) as draft:
            Path(draft).write_text(self.html, encoding="utf-8")

    def serve(self, port: int = 0, announce: Callable[[str], None] = print) -> None:
        """Show the page to browsers of this machine until the user interrupts the program.

        Args:
            port: port of the server; 0 for a free one.
            announce: callback that receives the address of the page.
        """
        content = self.html.encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
            announce(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()
