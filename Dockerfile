# A static binary in an image without a shell; runs as an ordinary user.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" \
      -o /out/usr/local/bin/tidemark ./cmd/tidemark
# A repair of a gap sorts keys in temporary files.
RUN mkdir -p /out/etc/ssl/certs /out/tmp && chmod 1777 /out/tmp \
    && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
EXPOSE 8083
ENTRYPOINT ["/usr/local/bin/tidemark"]
CMD ["run", "-c", "/etc/tidemark/tidemark.yaml"]
