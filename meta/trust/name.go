package trust

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"rankfs/meta"
)

// A Role says what a certificate is good for. There is one CA and may be many
// rights, so each use of a certificate asks for its role.
type Role string

// Any of these is a daemon of the cluster, and may use all protocols. What it may
// ask for there goes by its role.
const (
	RoleMember   Role = "member"
	RoleOperator Role = "operator"
	// RoleNode is of the release before, which knew no others. It says nothing:
	// what the cluster has noted counts, which is that such nodes are operators.
	RoleNode Role = "node"
)

// A Name is the subject of a certificate.
type Name struct {
	Cluster string // 16 lower-case hex digits
	Role    Role
	Node    string // 16 lower-case hex digits
}

const scheme = "rankfs"

// String is the name as it stands in a certificate, as its only alternative
// name: rankfs://CLUSTER/ROLE/NODE.
func (n Name) String() string { return fmt.Sprintf("%s://%s/%s/%s", scheme, n.Cluster, n.Role, n.Node) }

func (n Name) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: n.Cluster, Path: "/" + string(n.Role) + "/" + n.Node}
}

// parseName is the inverse of String, and takes nothing else.
func parseName(s string) (Name, error) {
	rest, found := strings.CutPrefix(s, scheme+"://")
	parts := strings.Split(rest, "/")
	if !found || len(parts) != 3 {
		return Name{}, fmt.Errorf("name in certificate: %w", meta.ErrInvalid)
	}
	n := Name{Cluster: parts[0], Role: Role(parts[1]), Node: parts[2]}
	if !isID(n.Cluster) || !isRole(n.Role) || !isID(n.Node) {
		return Name{}, fmt.Errorf("name in certificate: %w", meta.ErrInvalid)
	}
	return n, nil
}

// KeyID is the fingerprint of a node's public key, by which the cluster knows it.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// keyIn is the fingerprint of the key that a certificate is about; empty if no node
// has a key of its kind.
func keyIn(c *x509.Certificate) string {
	if key, ok := c.PublicKey.(ed25519.PublicKey); ok {
		return KeyID(key)
	}
	return ""
}

// nameIn is the name in a certificate, which must have no other subject names. It does
// not verify that the certificate is genuine.
func nameIn(c *x509.Certificate) (Name, error) {
	others := len(c.DNSNames) + len(c.EmailAddresses) + len(c.IPAddresses)
	if len(c.URIs) != 1 || others != 0 || c.IsCA {
		return Name{}, fmt.Errorf("name in certificate: %w", meta.ErrInvalid)
	}
	return parseName(c.URIs[0].String())
}

func isRole(r Role) bool {
	return r != "" && len(r) <= 16 && strings.Trim(string(r), "abcdefghijklmnopqrstuvwxyz") == ""
}

// isID reports whether s is the id of a node or a cluster.
func isID(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
