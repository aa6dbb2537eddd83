package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"

	"rankfs/meta"
)

// A Token lets whoever knows it join a cluster, once and not for long; that is
// for the cluster to see to, which keeps its Hash. It also says which cluster
// it is of, so that a node does not tell it to another.
//
// However it is printed, it is redacted; Reveal is the text for the person. The
// bytes are behind a function since fmt prints the inside of a struct's fields
// without asking their methods, and follows even a pointer if the verb is wrong.
type Token struct{ held func() held }

type held struct {
	secret [16]byte
	pin    Fingerprint
}

func tokenOf(h held) Token { return Token{func() held { return h }} }

// The text is a prefix with the version and then, in base 32, the secret, the
// fingerprint and a CRC-32 of both: 52 bytes, 84 characters. A checksum is no
// protection from forgers; it tells typing errors apart from them. A CRC finds
// every error that is confined to 32 bits, so each wrong or swapped character.
const (
	tokenPrefix = "rankfs1-"
	tokenBytes  = 16 + sha256.Size + 4
	tokenText   = (tokenBytes*8 + 4) / 5
)

// tokenDigits has one of 0 and o, and of 1, i and l. u is left out as Crockford did.
var tokenDigits = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewToken makes a token for the cluster of an authority.
func NewToken(pin Fingerprint) Token {
	h := held{pin: pin}
	rand.Read(h.secret[:]) // never fails
	return tokenOf(h)
}

// ParseToken reads what Reveal gave. Its errors do not repeat the text.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	digits, found := strings.CutPrefix(text, tokenPrefix)
	if !found {
		return Token{}, fmt.Errorf("token %w: one begins with %s", meta.ErrInvalid, tokenPrefix)
	}
	if len(digits) != tokenText {
		return Token{}, fmt.Errorf("token %w: it has %d characters of %d: copy all of it", meta.ErrInvalid, len(text), len(tokenPrefix)+tokenText)
	}
	var data [tokenBytes]byte
	_, err := tokenDigits.Decode(data[:], []byte(digits))
	body, sum := data[:tokenBytes-4], data[tokenBytes-4:]
	if err != nil || tokenDigits.EncodeToString(data[:]) != digits || crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return Token{}, fmt.Errorf("token %w: a character of it is wrong: copy it again", meta.ErrInvalid)
	}
	return tokenOf(held{secret: [16]byte(body[:16]), pin: Fingerprint(body[16:])}), nil
}

// Reveal is the token itself, for the person who asked for it and, over
// DialJoin, for the cluster.
func (t Token) Reveal() string {
	if t.held == nil {
		return ""
	}
	h := t.held()
	body := append(h.secret[:], h.pin[:]...)
	body = binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
	return tokenPrefix + tokenDigits.EncodeToString(body)
}

// Pin is the fingerprint of the authority that the token's cluster has.
func (t Token) Pin() Fingerprint {
	if t.held == nil {
		return Fingerprint{}
	}
	return t.held().pin
}

// Hash is what a cluster keeps of a token. The secret is as long as a key, so
// a plain hash cannot be guessed at.
func (t Token) Hash() [sha256.Size]byte {
	return sha256.Sum256([]byte("rankfs token\x00" + t.Reveal()))
}

// Is reports, in constant time, whether the token has that hash.
func (t Token) Is(hash [sha256.Size]byte) bool {
	own := t.Hash()
	return t.held != nil && subtle.ConstantTimeCompare(own[:], hash[:]) == 1
}

const redacted = tokenPrefix + "(redacted)"

func (t Token) String() string               { return redacted }
func (t Token) Format(s fmt.State, _ rune)   { s.Write([]byte(redacted)) }
func (t Token) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (t Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
