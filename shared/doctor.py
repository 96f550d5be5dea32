"""The former name of `python -m groundup.doctor`."""

if __name__ == "__main__":
    import groundup.doctor.__main__  # noqa: F401  # which reports and leaves with its exit code
