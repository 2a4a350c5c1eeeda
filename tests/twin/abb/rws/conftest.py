"""Web services of a virtual controller, and a client as C++ drivers are, for the tests in this folder."""

import pytest

from tests.support.cpp_client import CppClient
from tests.support.web_services import WebServices


@pytest.fixture(scope="module")
def served(abb_robot, tmp_path_factory):
    with WebServices(abb_robot, tmp_path_factory.mktemp("cell")) as made:
        yield made


@pytest.fixture
def client(served):
    made = CppClient(served.port)
    yield made
    made.close()
