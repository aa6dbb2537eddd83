package group

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// written is all that nodes have in their directories: bytes that are not zero,
// for most of a log is room for more.
func written(t *testing.T, nodes []*node) (files [][]byte) {
	t.Helper()
	for _, n := range nodes {
		err := filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			files = append(files, bytes.Split(text, make([]byte, 64))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

var digits = regexp.MustCompile(`[0-9a-f]{32,}|[0-9A-Za-z+/=]{43,}|[0-9A-Za-z_=-]{43,}`)

// digits32 are those of a token.
var digits32 = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// A burglar has what nodes have written, and tries whether it lets a node in.
type burglar struct {
	t         *testing.T
	machine   *state.Machine
	id        *trust.Identity
	authority trust.Fingerprint
	request   []byte
	tried     map[[32]byte]bool
}

func newBurglar(t *testing.T, first *node) *burglar {
	id, err := trust.OpenIdentity(t.TempDir(), "00000000000000ee", "burglar")
	if err != nil {
		t.Fatal(err)
	}
	request, err := id.Request()
	if err != nil {
		t.Fatal(err)
	}
	return &burglar{
		t: t, machine: first.machine, id: id, request: request, tried: make(map[[32]byte]bool),
		authority: first.group.config.Authority.Fingerprint(),
	}
}

// opens reports whether the cluster takes an application for one with a token.
func (b *burglar) opens(a application) bool {
	hash, err := a.token(b.machine.Version())
	if err != nil {
		return false
	}
	_, ok := b.machine.Token(hash)
	return ok
}

// lets reports whether 32 bytes let a node in. That takes a signature by a key of which the
// cluster has the hash, so they are that key or its seed, or begin with the secret of a token.
func (b *burglar) lets(w []byte) bool {
	seeds := ed25519.NewKeyFromSeed(w).Public().(ed25519.PublicKey)
	for _, hash := range [][32]byte{hashOf(w), hashOf(seeds), b.token(w[:16]).Hash()} {
		if _, ok := b.machine.Token(hex.EncodeToString(hash[:])); ok {
			return true
		}
	}
	return false
}

// hashOf is what a cluster keeps of a token's key.
func hashOf(key ed25519.PublicKey) [32]byte {
	return sha256.Sum256(append([]byte("rankfs token\x00"), key...))
}

// try uses 32 bytes for whatever a key, a secret or a proof may be. With -short it trusts that
// what lets a node in is what the cluster has the hash of.
func (b *burglar) try(w []byte) {
	key := [32]byte(w)
	if b.tried[key] {
		return
	}
	b.tried[key] = true
	if b.lets(w) || !testing.Short() && b.proves(w) {
		b.t.Errorf("%x lets a node in", w)
	}
}

// proves reports whether the cluster takes an application with 32 bytes for a hash, and a proof
// by them, for one with a token.
func (b *burglar) proves(w []byte) bool {
	a := application{Request: b.request, Addr: "127.0.0.1:1", Speaks: state.Version, Token: hex.EncodeToString(w)}
	seeds := ed25519.NewKeyFromSeed(w)
	for _, p := range []trust.Proof{
		{Key: seeds.Public().(ed25519.PublicKey), Signature: ed25519.Sign(seeds, a.asked())},
		{Key: w, Signature: append(bytes.Clone(w), w...)},
		b.token(w[:16]).Prove(a.asked()),
	} {
		a.Proof = &p
		if b.opens(a) {
			return true
		}
	}
	return false
}

const tokenPrefix = "rankfs2-"

// token is the one of a secret.
func (b *burglar) token(secret []byte) trust.Token {
	body := append(bytes.Clone(secret), b.authority[:]...)
	sum := crc32.Update(crc32.ChecksumIEEE([]byte(tokenPrefix)), crc32.IEEETable, body)
	token, err := trust.ParseToken(tokenPrefix + digits32.EncodeToString(binary.BigEndian.AppendUint32(body, sum)))
	if err != nil {
		b.t.Fatal(err)
	}
	return token
}

// all tries every 32 bytes that follow one another, as they are and decoded.
func (b *burglar) all(text []byte) {
	for i := 0; i+32 <= len(text); i++ {
		b.try(text[i : i+32])
	}
	for _, run := range digits.FindAll(text, -1) {
		if data, err := hex.DecodeString(string(run[:len(run)&^1])); err == nil && len(data) >= 32 {
			b.try(data[:32])
			b.try(data[len(data)-32:])
		}
		for _, form := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			data := make([]byte, form.DecodedLen(len(run)))
			if n, err := form.Decode(data, run); err == nil {
				for i := 0; i+32 <= n; i++ {
					b.try(data[i : i+32])
				}
			}
		}
	}
}

// What the nodes of a cluster have written lets no node in: neither any bytes of
// it, as a key, a secret or a proof, nor, over the wire, what looks like a token's
// hash. And the test knows a token when it sees one.
func TestWhatIsKeptLetsNoNodeIn(t *testing.T) {
	first := newNode(t, 0).found()
	second := joined(t, first, 1, state.Member)
	token := first.token(4)
	joined(t, first, 2, state.Operator) // there is a token that was used up as well
	eventually.True(t, "the other knows the token", func() bool { return len(second.machine.Tokens()) == 1 })
	third := newNode(t, 3)
	if err := third.join(first, token); err != nil { // whose proof went over the wire
		t.Fatal(err)
	}
	nodes := []*node{first, second, third}
	for _, n := range nodes {
		eventually.True(t, "there is a snapshot as well", func() bool {
			err := n.group.raft.Snapshot().Error() // not before Raft's own entries are executed
			return err == nil || errors.Is(err, raft.ErrNothingNewToSnapshot)
		})
	}
	b := newBurglar(t, first)
	kept := written(t, nodes)
	for _, text := range kept {
		b.all(text)
	}
	t.Logf("%d strings of 32 bytes tried", len(b.tried))
	hash := token.Hash()
	if !b.tried[hash] {
		t.Error("the hash of the token is not among what was tried")
	}

	outside := newNode(t, 9)
	for _, text := range kept {
		if bytes.Contains(text, []byte(token.Reveal())) {
			t.Error("the token itself was written")
		}
	}
	a := application{Request: b.request, Addr: "127.0.0.1:1", Speaks: state.Version, Token: hex.EncodeToString(hash[:])}
	key := ed25519.NewKeyFromSeed(hash[:])
	sum := sha256.Sum256(hash[:])
	for _, p := range []*trust.Proof{nil, {Key: hash[:]}, {Key: sum[:], Signature: make([]byte, 64)}, {Key: key.Public().(ed25519.PublicKey), Signature: ed25519.Sign(key, a.asked())}} {
		a.Proof = p
		if err := b.applies(first.addr, a); !errors.Is(err, meta.ErrDenied) {
			t.Errorf("over the wire, with the hash: %v", err)
		}
	}
	// What a relay has seen is of no use to it.
	request, err := outside.identity.Request()
	if err != nil {
		t.Fatal(err)
	}
	seen := application{Request: request, Addr: "127.0.0.1:2"}.present(token)
	seen.Request = b.request
	if err := b.applies(first.addr, seen); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("another's proof: %v", err)
	}
	own := application{Request: b.request, Addr: "127.0.0.1:1"}.present(token)
	if !b.opens(own) {
		t.Error("the token itself is not taken for one")
	}
	text := token.Reveal()
	secret, err := digits32.DecodeString(text[len(tokenPrefix):])
	if seed := sha256.Sum256([]byte("rankfs token key\x00" + text)); err != nil || !b.lets(secret[:32]) || !b.lets(seed[:]) || !b.lets(own.Proof.Key) {
		t.Errorf("what lets a node in is not found (%v)", err)
	}
}

// applies sends an application over the wire.
func (b *burglar) applies(at string, a application) error {
	conn, _, err := trust.DialJoin(b.t.Context(), at, b.authority, nil, time.Now())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = apply(conn, a)
	return err
}

// A token that was dropped lets no node in, however often it could have.
func TestADroppedToken(t *testing.T) {
	first := newNode(t, 0).found()
	token := first.token(2)
	if err := newNode(t, 1).join(first, token); err != nil {
		t.Fatal(err)
	}
	hash := token.Hash()
	if err := first.group.DropToken(t.Context(), hex.EncodeToString(hash[:])); err != nil {
		t.Fatal(err)
	}
	if err := newNode(t, 2).join(first, token); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("a dropped token: %v", err)
	}
	if len(first.machine.Tokens()) != 0 {
		t.Errorf("tokens %+v", first.machine.Tokens())
	}
}
