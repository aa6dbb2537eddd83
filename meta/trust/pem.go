package trust

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"rankfs/meta"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// decode takes the one block of a kind that data is, and nothing beside it.
func decode(kind string, data []byte) ([]byte, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != kind || len(block.Headers) != 0 || len(bytes.TrimSpace(rest)) != 0 {
		return nil, fmt.Errorf("no PEM of one %s: %w", kind, meta.ErrCorrupt)
	}
	return block.Bytes, nil
}

func decodeCertificate(data []byte) (*x509.Certificate, error) {
	der, err := decode(certificateBlock, data)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate %w: %w", meta.ErrCorrupt, err)
	}
	if _, ok := cert.PublicKey.(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("key of certificate %w: it is not Ed25519", meta.ErrInvalid)
	}
	return cert, nil
}

func encodeKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encode(keyBlock, der), nil
}

// decodeKey never puts what it was given into an error.
func decodeKey(data []byte) (ed25519.PrivateKey, error) {
	der, err := decode(keyBlock, data)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("key %w", meta.ErrCorrupt)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key %w: it is not Ed25519", meta.ErrInvalid)
	}
	return key, nil
}

// matches reports whether a certificate is about a key.
func matches(cert *x509.Certificate, key ed25519.PrivateKey) bool {
	return key.Public().(ed25519.PublicKey).Equal(cert.PublicKey)
}
