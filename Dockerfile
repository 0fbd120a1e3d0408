# A static binary in an image without a shell; runs as an ordinary user.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" \
      -o /tidemark ./cmd/tidemark

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /tidemark /usr/local/bin/tidemark
USER 65532:65532
EXPOSE 8083
ENTRYPOINT ["/usr/local/bin/tidemark"]
CMD ["run", "-c", "/etc/tidemark/tidemark.yaml"]
