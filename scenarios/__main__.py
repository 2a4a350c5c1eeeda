"""Run the command line: `python -m scenarios` is `irb-twin`."""

if __name__ == "__main__":
    import sys

    from scenarios.shell.process import main

    sys.argv[0] = "irb-twin"
    raise SystemExit(main())
