package schema

// PostGIS prints geometry and geography as the hexadecimal digits of their EWKB, byte order and
// SRID included (LWGEOM_out): the bytes are the value.
func geometryType(name string) Type { return rawType(name, `"bytes"`, appendGeometry) }

func appendGeometry(dst, text []byte) ([]byte, error) {
	if len(text) == 0 {
		return dst, ErrUnrepresentable
	}
	return appendHex(dst, text)
}
