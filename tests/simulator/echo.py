#!/usr/bin/env python3
"""A channel that shows in a file what it was sent.  echo.py PORT_FILE SHOWN [CERTIFICATE]

/cut answers nothing, /wait answers late, /big answers too much, /redirect leads elsewhere.
"""
import http.server
import json
import os
import ssl
import sys
import time

PORT_FILE, SHOWN = sys.argv[1:3]


class Channel(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open(SHOWN, "a", encoding="ascii") as shown:
            shown.write(json.dumps({"method": self.command, "path": self.path,
                                    "headers": [[k.lower(), v] for k, v in self.headers.items()],
                                    "size": len(body), "sum": sum(body)}) + "\n")
        if self.path.endswith("/cut"):
            self.close_connection = True
            return
        if self.path.endswith("/wait"):
            time.sleep(3)
        answer = b"x" * 5000000 if self.path.endswith("/big") else b'{"id":"R-1"}'
        self.send_response(307 if self.path.endswith("/redirect") else 201)
        self.send_header("Location", "/elsewhere")
        self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2")
        self.send_header("Connection", "close, X-Mine")
        self.send_header("X-Mine", "of this connection")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(answer)
            except OSError:
                pass
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_PAY = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Channel)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(PORT_FILE + ".new", "w", encoding="ascii") as port_file:
    port_file.write(f"{server.server_address[1]}\n")
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
