package fault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// RefusedTLS reports whether two sides do not agree on TLS: a certificate that one does not accept,
// or a peer that does not speak it. Trying again cannot mend that.
func RefusedTLS(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		header    tls.RecordHeaderError
		alert     tls.AlertError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &header) || errors.As(err, &alert)
}
