# A static binary in an image without a shell; runs as an ordinary user.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" \
      -o /tidemark ./cmd/tidemark

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /tidemark /usr/local/bin/tidemark
USER nonroot
EXPOSE 8083
ENTRYPOINT ["/usr/local/bin/tidemark"]
CMD ["run", "-c", "/etc/tidemark/tidemark.yaml"]
