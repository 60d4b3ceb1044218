"""The application on a port of its own, for clients that need one."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Forwarding:
    """A server that hands every request to the application of a client."""

    def __init__(self, client):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer(client.get(self.path))

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(client.request("POST", self.path, content=body))

            def _answer(self, answer):
                self.send_response(answer.status_code)
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_):
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
