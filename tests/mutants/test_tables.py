"""Tables of mutants: each can be applied, and names tests that exist."""

from tests.mutants.__main__ import HOUSE, mutants


def test_each_mutant_changes_one_place_and_names_tests_that_exist():
    found = mutants()
    assert len(found) >= 80
    for mutant in found:
        assert (HOUSE / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new, mutant.name
        assert bool(mutant.tests) != bool(mutant.survives), mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (HOUSE / file).read_text(encoding="utf-8"), mutant.name


def test_every_package_of_the_product_has_mutants():
    assert {mutant.file.partition("/")[0] for mutant in mutants()} == {
        "twin",
        "controllers",
        "scenarios",
        "urdf",
    }
