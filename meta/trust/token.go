package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"

	"rankfs/meta"
)

// A Token lets its holder join a cluster, a limited number of times and until it
// expires; the cluster enforces both, and keeps its Hash. It also names its
// cluster, so that a node does not send it to another.
//
// However it is printed, it is redacted; Reveal is the text for the person. The
// bytes are behind a function since fmt prints the inside of a struct's fields
// without asking their methods, and follows even a pointer if the verb is wrong.
type Token struct{ held func() held }

// held has the contents of a token.
type held struct {
	secret    [16]byte
	authority Fingerprint
	plain     bool // of the release before
}

func tokenOf(h held) Token { return Token{func() held { return h }} }

// The text is a prefix with the version and then, in base 32, the secret, the
// fingerprint and a CRC-32 of both: 52 bytes, 84 characters. A checksum is no
// protection from forgers; it tells typing errors apart from them. A CRC finds
// every error that is confined to 32 bits, so each wrong or swapped character.
const (
	tokenPrefix = "rankfs2-"
	plainPrefix = "rankfs1-"
	tokenBytes  = 16 + sha256.Size + 4
	tokenText   = (tokenBytes*8 + 4) / 5
)

// tokenDigits has one of 0 and o, and of 1, i and l. u is left out as Crockford did.
var tokenDigits = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewToken makes a token for the cluster of an authority.
func NewToken(authority Fingerprint) Token { return newToken(held{authority: authority}) }

// NewPlainToken makes one for a cluster that still has nodes of the release
// before. They are sent its Hash, which is also what the cluster keeps: a reader of the
// cluster's log can join with it.
func NewPlainToken(authority Fingerprint) Token {
	return newToken(held{authority: authority, plain: true})
}

func newToken(h held) Token {
	rand.Read(h.secret[:]) // never fails
	return tokenOf(h)
}

// ParseToken reads what Reveal gave. Its errors do not repeat the text.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	digits, found := strings.CutPrefix(text, tokenPrefix)
	plain := false
	if !found {
		digits, plain = strings.CutPrefix(text, plainPrefix)
	}
	if !found && !plain {
		return Token{}, fmt.Errorf("token %w: one begins with %s", meta.ErrInvalid, tokenPrefix)
	}
	if len(digits) != tokenText {
		return Token{}, fmt.Errorf("token %w: it has %d characters of %d: copy all of it", meta.ErrInvalid, len(text), len(tokenPrefix)+tokenText)
	}
	var data [tokenBytes]byte
	_, err := tokenDigits.Decode(data[:], []byte(digits))
	body, sum := data[:tokenBytes-4], data[tokenBytes-4:]
	if err != nil || tokenDigits.EncodeToString(data[:]) != digits || checksum(body, plain) != binary.BigEndian.Uint32(sum) {
		return Token{}, fmt.Errorf("token %w: a character of it is wrong: copy it again", meta.ErrInvalid)
	}
	return tokenOf(held{secret: [16]byte(body[:16]), authority: Fingerprint(body[16:]), plain: plain}), nil
}

// Reveal is the token itself, for the person who asked for it and, over
// DialJoin, for the cluster.
func (t Token) Reveal() string {
	if t.held == nil {
		return ""
	}
	h := t.held()
	body := append(h.secret[:], h.authority[:]...)
	body = binary.BigEndian.AppendUint32(body, checksum(body, h.plain))
	return h.prefix() + tokenDigits.EncodeToString(body)
}

// checksum is over the prefix as well, but in the release before.
func checksum(body []byte, plain bool) uint32 {
	if plain {
		return crc32.ChecksumIEEE(body)
	}
	return crc32.Update(crc32.ChecksumIEEE([]byte(tokenPrefix)), crc32.IEEETable, body)
}

func (h held) prefix() string {
	if h.plain {
		return plainPrefix
	}
	return tokenPrefix
}

// IsPlain reports whether the token is of NewPlainToken.
func (t Token) IsPlain() bool { return t.held != nil && t.held().plain }

// Authority is the fingerprint of the authority that the token's cluster has.
func (t Token) Authority() Fingerprint {
	if t.held == nil {
		return Fingerprint{}
	}
	return t.held().authority
}

// Hash is kept by a cluster in place of the token: the hash of the public half of a key whose
// private half is derived from the secret. A Proof cannot be made from it.
func (t Token) Hash() [sha256.Size]byte {
	if t.IsPlain() {
		return sha256.Sum256([]byte("rankfs token\x00" + t.Reveal()))
	}
	return hashOf(t.key().Public().(ed25519.PublicKey))
}

func (t Token) key() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("rankfs token key\x00" + t.Reveal()))
	return ed25519.NewKeyFromSeed(seed[:])
}

func hashOf(key ed25519.PublicKey) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("rankfs token\x00"), key...))
}

// A Proof shows that the sender of a request has a token. It is bound to that request:
// a node that forwards it cannot use it for a request of its own.
type Proof struct {
	Key       []byte `json:"key"`
	Signature []byte `json:"signature"`
}

// Prove signs what is asked for.
func (t Token) Prove(asked []byte) Proof {
	key := t.key()
	defer clear(key)
	return Proof{key.Public().(ed25519.PublicKey), ed25519.Sign(key, asked)}
}

// Token is the hash of the token that a proof was made with, for what is asked.
func (p Proof) Token(asked []byte) (hash [sha256.Size]byte, err error) {
	if len(p.Key) != ed25519.PublicKeySize || !ed25519.Verify(p.Key, asked, p.Signature) {
		return hash, fmt.Errorf("token %w: its proof is not of what is asked for", meta.ErrDenied)
	}
	return hashOf(p.Key), nil
}

const redacted = tokenPrefix + "(redacted)"

func (t Token) String() string               { return redacted }
func (t Token) Format(s fmt.State, _ rune)   { s.Write([]byte(redacted)) }
func (t Token) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (t Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
