package datanode

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rankfs/meta"
)

const setting = "dfs.data.transfer.protection"

// A digest is one exchange of SASL's DIGEST-MD5 (RFC 2831), the client's side: both
// ends show that they know a password, and get keys from it.
type digest struct {
	who               proof
	realm, nonce, own string // own is our nonce
	quality           string // of protection, as the mechanism calls it
}

// A proof is a name and a password that only we and a datanode know.
type proof struct{ name, password string }

const uri = "hdfs/0"

// qualities are the mechanism's names of protections.
var qualities = map[string]string{"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}

// newDigest answers a challenge with the first allowed protection that is
// offered.
func newDigest(who proof, allowed []string, challenge []byte) (*digest, error) {
	offer, err := parseChallenge(string(challenge))
	if err != nil {
		return nil, err
	}
	offered := strings.Split(offer["qop"], ",")
	i := slices.IndexFunc(allowed, func(p string) bool { return slices.Contains(offered, qualities[p]) })
	if i < 0 {
		return nil, fmt.Errorf("it does not offer %s but %q: make %s the same on both sides", strings.Join(allowed, " or "), offered, setting)
	}
	d := &digest{who: who, realm: offer["realm"], nonce: offer["nonce"], own: rand.Text(), quality: qualities[allowed[i]]}
	if d.private() && !slices.Contains(strings.Split(offer["cipher"], ","), "rc4") {
		return nil, fmt.Errorf("it encrypts by %q alone: set dfs.encrypt.data.transfer.cipher.suites to AES/CTR/NoPadding and dfs.encrypt.data.transfer.algorithm to rc4", offer["cipher"])
	}
	return d, nil
}

// parseChallenge reads NAME=VALUE or NAME="VALUE", with commas between.
func parseChallenge(s string) (map[string]string, error) {
	values := make(map[string]string)
	for s != "" {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("its challenge %w", meta.ErrCorrupt)
		}
		var value string
		if quoted, found := strings.CutPrefix(rest, `"`); found {
			value, rest, ok = strings.Cut(quoted, `"`)
			rest = strings.TrimPrefix(rest, ",")
		} else {
			value, rest, _ = strings.Cut(rest, ",")
		}
		if !ok || strings.Contains(value, `\`) {
			return nil, fmt.Errorf("its challenge %w", meta.ErrCorrupt)
		}
		values[strings.TrimSpace(name)], s = value, rest
	}
	return values, nil
}

func (d *digest) private() bool { return d.quality == qualities["privacy"] }

// response proves to the datanode that this client knows the password.
func (d *digest) response() []byte {
	cipher := ""
	if d.private() {
		cipher = ",cipher=rc4"
	}
	return fmt.Appendf(nil, `charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",response=%s,qop=%s%s`,
		d.who.name, d.realm, d.nonce, d.own, uri, d.sum("AUTHENTICATE"), d.quality, cipher)
}

// check returns an error unless the answer proves that the datanode knows it too.
func (d *digest) check(answer []byte) error {
	shown, ok := strings.CutPrefix(string(answer), "rspauth=")
	if !ok || subtle.ConstantTimeCompare([]byte(shown), []byte(d.sum(""))) == 0 {
		return errors.New("it does not know the secret of the block's token: it may be another than the namenode's")
	}
	return nil
}

// session is the hash that all keys are derived from.
func (d *digest) session() []byte {
	h := md5.Sum([]byte(d.who.name + ":" + d.realm + ":" + d.who.password))
	h = md5.Sum([]byte(string(h[:]) + ":" + d.nonce + ":" + d.own))
	return h[:]
}

func (d *digest) sum(method string) string {
	about := method + ":" + uri
	if d.quality != qualities["authentication"] {
		about += ":" + strings.Repeat("0", 32)
	}
	return hexSum(strings.Join([]string{hex.EncodeToString(d.session()), d.nonce, "00000001", d.own, d.quality, hexSum(about)}, ":"))
}

func hexSum(s string) string {
	h := md5.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}

// keys returns the keys of one direction: to sign, and to encrypt.
func (d *digest) keys(direction string) (sign, encrypt []byte) {
	s := md5.Sum([]byte(string(d.session()) + "Digest session key to " + direction + " signing key magic constant"))
	e := md5.Sum([]byte(string(d.session()) + "Digest H(A1) to " + direction + " sealing key magic constant"))
	return s[:], e[:]
}
