# Image of irb-twin: a virtual ABB controller for clients in other containers.  Not built by its authors: no container runs there.
#   docker build -t irb-twin .
#   docker run --rm -v $PWD:/station -p 8080:8080 irb-twin abb serve /station/station.toml --rws 8080 --listen 0.0.0.0
FROM python:3.11-slim

RUN useradd --create-home twin
COPY pyproject.toml README.md /build/
COPY urdf /build/urdf
COPY twin /build/twin
COPY controllers /build/controllers
COPY scenarios /build/scenarios
RUN pip install --no-cache-dir --no-compile '/build[abb]' && rm -rf /build

USER twin
WORKDIR /home/twin
# Compiles the functions of the arm into the user's cache, for the type of processor of this machine.
RUN irb-twin new station station && irb-twin abb serve station/station.toml --duration 0.5

# Robot Web Services 1.0 and 2.0, sockets of the public drivers, EGM
EXPOSE 8080 8443 5000 5001 11000 11002 6510/udp
ENTRYPOINT ["irb-twin"]
CMD ["abb", "serve", "station/station.toml", "--rws", "8080", "--listen", "0.0.0.0", "--bind", "0.0.0.0"]
