"""Client that sends what the C++ drivers of ABB's controllers send, and reads what they read.

As they do, it answers the first 401 by a digest, then sends the cookies alone; it encodes no body, and takes
the first element of an answer in XML that has a class.
"""

import http.client
import re
from hashlib import md5
from xml.etree import ElementTree

from tests.support.web_services import USER


def _md5(text):
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def digest(challenge, method, uri, count="00000001", user=USER):
    """Return the header of an authorization for a header of a challenge."""
    realm, nonce = (re.search(f'{name}="([^"]*)"', challenge)[1] for name in ("realm", "nonce"))
    known, asked = _md5(f"{user[0]}:{realm}:{user[1]}"), _md5(f"{method}:{uri}")
    response = _md5(f"{known}:{nonce}:{count}:abc:auth:{asked}")
    return (
        f'Digest username="{user[0]}", realm="{realm}", nonce="{nonce}", uri="{uri}", qop=auth, nc={count}, '
        f'cnonce="abc", response="{response}"'
    )


class CppClient:
    """Connection to a controller."""

    def __init__(self, port, timeout=5.0):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.cookies = {}
        self.challenges = 0

    def request(self, method, uri, content=""):
        """Return status, headers and body of an answer."""
        answer = self._once(method, uri, content, {})
        if answer[0] == 401:
            self.challenges += 1
            self.cookies.clear()
            header = digest(answer[1]["WWW-Authenticate"], method, uri)
            answer = self._once(method, uri, content, {"Authorization": header})
        return answer

    def _once(self, method, uri, content, headers):
        headers = dict(headers)
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method == "POST" or content:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.connection.request(method, uri, content, headers)
        answer = self.connection.getresponse()
        body = answer.read()
        for text in answer.headers.get_all("Set-Cookie", []):
            name, _, rest = text.partition("=")
            assert ";" in rest  # the driver looks for the end of the value
            self.cookies[name] = rest.partition(";")[0]
        return answer.status, answer.headers, body

    def close(self):
        """Close the connection."""
        self.connection.close()

    def document(self, uri):
        """Return the elements of an answer in XML."""
        status, _, body = self.request("GET", uri)
        assert status == 200, body
        return ElementTree.fromstring(body)

    def post(self, uri, content=""):
        """Return the status of a command."""
        return self.request("POST", uri, content)[0]


def found(root, kind):
    """Return the elements of a class, in the order of the document."""
    return [one for one in root.iter() if one.get("class") == kind]


def text(root, kind):
    """Return the text of the first element of a class, "" if there is none."""
    elements = found(root, kind)
    return (elements[0].text or "") if elements else ""
