package nodes_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A burglar takes out of bytes all that may be of use for a join.
//
// To be let in takes a signature by a key of which the cluster has the hash: one whose
// seed, 32 bytes, is the hash of a token's text; and that is 16 random bytes, and what
// any reader can reckon from them and the fingerprint of the authority. So whatever lets a
// node in has those 16 bytes in it, or those 32, or either in the digits of some base. A
// burglar takes all 16 and all 32 bytes that follow one another, as they are, and out of
// what each run of digits stands for, from each digit on that may be the first of a byte.
type burglar struct {
	authority trust.Fingerprint
	secrets   map[[16]byte]bool
	seeds     map[[32]byte]bool
	texts     map[string]bool
}

func newBurglar(authority trust.Fingerprint) *burglar {
	return &burglar{authority, make(map[[16]byte]bool), make(map[[32]byte]bool), make(map[string]bool)}
}

const tokenPrefix = "rankfs2-"

var (
	digits    = regexp.MustCompile(`[0-9A-Za-z+/_-]{22,}`) // 16 bytes in base 64, and more in others
	texts     = regexp.MustCompile(`rankfs[0-9]-[0-9a-z]{84}`)
	base32s   = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
	notDigits = regexp.MustCompile(`[^0-9a-hjkmnp-tv-z]+`)
	notHex    = regexp.MustCompile(`[^0-9a-fA-F]+`)
)

// takes goes through a file. Most of a log is zeros, as room for more.
func (b *burglar) takes(file []byte) {
	for part := range bytes.SplitSeq(file, make([]byte, 64)) {
		b.takesRaw(append(bytes.Clone(part), make([]byte, 32)...)) // what ends in a zero may go on in them
		for _, run := range digits.FindAll(part, -1) {
			b.takesDigits(string(run))
		}
		for _, text := range texts.FindAll(part, -1) {
			b.texts[string(text)] = true
		}
	}
}

func (b *burglar) takesRaw(text []byte) {
	for i := range text {
		if rest := text[i:]; len(rest) >= 16 {
			b.secrets[[16]byte(rest)] = true
			if len(rest) >= 32 {
				b.seeds[[32]byte(rest)] = true
			}
		}
	}
}

// takesDigits decodes a run of digits in all bases that anything of ours is written in.
func (b *burglar) takesDigits(run string) {
	for _, form := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for i := range 4 {
			b.takesRaw(decoded(run[i:], 4, form.DecodeString))
		}
	}
	for _, s := range notDigits.Split(run, -1) {
		for i := range min(8, len(s)) {
			b.takesRaw(decoded(s[i:], 8, base32s.DecodeString))
		}
	}
	for _, s := range notHex.Split(run, -1) {
		for i := range min(2, len(s)) {
			b.takesRaw(decoded(s[i:], 2, hex.DecodeString))
		}
	}
}

// decoded is as much as can be decoded of digits, so many of which are whole bytes.
func decoded(s string, group int, decode func(string) ([]byte, error)) []byte {
	for n := len(s); n > max(0, len(s)-group); n-- {
		if data, err := decode(s[:n]); err == nil {
			return data
		}
	}
	return nil
}

// token is the one of a secret.
func (b *burglar) token(secret [16]byte) (trust.Token, error) {
	body := append(secret[:], b.authority[:]...)
	sum := crc32.Update(crc32.ChecksumIEEE([]byte(tokenPrefix)), crc32.IEEETable, body)
	return trust.ParseToken(tokenPrefix + base32s.EncodeToString(binary.BigEndian.AppendUint32(body, sum)))
}

// hashOf is what a cluster keeps of a token whose key has that seed.
func hashOf(seed [32]byte) [32]byte {
	key := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	return sha256.Sum256(append([]byte("rankfs token\x00"), key...))
}

// finds is all that has one of these hashes, by which the leader knows a token.
func (b *burglar) finds(hashes map[[32]byte]bool) (found []string, err error) {
	for text := range b.texts {
		if token, err := trust.ParseToken(text); err == nil && hashes[token.Hash()] {
			found = append(found, text)
		}
	}
	var secrets [][16]byte
	for secret := range b.secrets {
		secrets = append(secrets, secret)
	}
	var seeds [][32]byte
	for seed := range b.seeds {
		seeds = append(seeds, seed)
	}
	var mu sync.Mutex
	note := func(what string, failed error) {
		mu.Lock()
		defer mu.Unlock()
		found, err = append(found, what), errors.Join(err, failed)
	}
	spread(secrets, func(secret [16]byte) {
		if token, err := b.token(secret); err != nil || hashes[token.Hash()] {
			note(fmt.Sprintf("secret %x", secret), err)
		}
	})
	spread(seeds, func(seed [32]byte) {
		if hashes[hashOf(seed)] {
			note(fmt.Sprintf("seed %x", seed), nil)
		}
	})
	return found, err
}

// spread does something with each of many, on all processors.
func spread[T any](all []T, do func(T)) {
	var done sync.WaitGroup
	for part := range slices.Chunk(all, max(1, (len(all)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))) {
		done.Go(func() {
			for _, one := range part {
				do(one)
			}
		})
	}
	done.Wait()
}

// files are all below some directories.
func files(t *testing.T, dirs ...string) (paths []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// What three daemons have written, their logs, a snapshot and a backup, lets no node in,
// while there are tokens of either role that do. And a token's text, secret or seed, in whatever
// digits it is written, would be found.
func TestWhatIsWrittenLetsNoNodeIn(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3]) // by a token, which went over the wire
	m.voting()
	hashes := make(map[[32]byte]bool)
	var tokens []trust.Token
	for _, role := range []string{"member", "operator"} {
		token, err := trust.ParseToken(m.Nodes[1].Do("token", "create", "--role", role, "--uses", "2"))
		if err != nil {
			t.Fatal(err)
		}
		hashes[token.Hash()], tokens = true, append(tokens, token)
	}
	s := &stranger{t, c.Hosts()[3], m.Nodes[0]}
	if err := s.joins(t.TempDir(), guest, tokens[0]); err != nil { // which has one use left
		t.Fatal(err)
	}
	m.takesOut(m.Nodes[0], guest) // no daemon answers for it
	last := m.Nodes[2]
	last.Must("cp", "-a", last.Dir+"/state", last.Dir+"/backup")
	eventually.True(t, "a daemon that ends takes a snapshot", func() bool {
		m.Nodes[1].Do("token", "create") // there is none while the log ends with who votes
		if err := last.Stop(); err != nil {
			t.Fatal(err)
		}
		last.Start()
		m.voting()
		return slices.ContainsFunc(files(t, last.Dir+"/state"), func(path string) bool { return strings.Contains(path, "/snapshots/") })
	})

	dirs := []string{last.Dir + "/backup"}
	for _, n := range m.Nodes {
		dirs = append(dirs, n.Dir+"/state")
	}
	b := newBurglar(tokens[0].Authority())
	paths := files(t, dirs...)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // daemons are at work
			t.Fatal(err)
		}
		b.takes(text)
	}
	for hash := range hashes {
		if !b.seeds[hash] {
			t.Errorf("the hash of a token is not among the bytes that were written, which then are not all: %q", paths)
		}
	}
	found, err := b.finds(hashes)
	t.Logf("%d files: %d secrets, %d seeds and %d texts were tried", len(paths), len(b.secrets), len(b.seeds), len(b.texts))
	if len(found) > 0 || err != nil {
		t.Errorf("it lets nodes in: %q, %v", found, err)
	}
	s.joinsByNone(b)
	for i, token := range tokens {
		knowsAToken(t, token)
		if err := s.joins(t.TempDir(), fmt.Sprintf("00000000000000f%d", i), token); err != nil {
			t.Errorf("what was looked for lets no node in either: %v", err)
		}
	}
}

// joinsByNone tries to join by all texts that a burglar has, and by some of its secrets.
func (s *stranger) joinsByNone(b *burglar) {
	s.t.Helper()
	var tokens []trust.Token
	for text := range b.texts {
		if token, err := trust.ParseToken(text); err == nil {
			tokens = append(tokens, token)
		}
	}
	for secret := range b.secrets {
		token, err := b.token(secret)
		if err != nil {
			s.t.Fatal(err)
		}
		if tokens = append(tokens, token); len(tokens) >= 200 {
			break
		}
	}
	const other = "00000000000000fe" // the guest was removed
	for _, token := range tokens {
		if err := s.joins(s.t.TempDir(), other, token); !errors.Is(err, meta.ErrDenied) {
			s.t.Errorf("%s lets a node in, or is not asked: %v", token.Reveal(), err)
		}
	}
}

// knowsAToken has a burglar find a token in all forms in which it may be written.
func knowsAToken(t *testing.T, token trust.Token) {
	t.Helper()
	text := token.Reveal()
	body, err := base32s.DecodeString(strings.TrimPrefix(text, tokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	secret, seed := body[:16], sha256.Sum256([]byte("rankfs token key\x00"+text))
	for name, written := range map[string]string{
		"text":                 text,
		"text without a head":  text[len(tokenPrefix):],
		"secret":               string(secret),
		"secret in hex":        hex.EncodeToString(secret),
		"secret in base 64":    base64.StdEncoding.EncodeToString(secret),
		"seed":                 string(seed[:]),
		"seed in base 64":      base64.StdEncoding.EncodeToString(seed[:]),
		"private key":          string(ed25519.NewKeyFromSeed(seed[:])),
		"secret within base64": base64.StdEncoding.EncodeToString(append([]byte("ab"), secret...)),
	} {
		b := newBurglar(token.Authority())
		b.takes([]byte("\x01 " + written + "\xff\x00 more"))
		if found, err := b.finds(map[[32]byte]bool{token.Hash(): true}); len(found) == 0 || err != nil {
			t.Errorf("%s is not found: %v", name, err)
		}
	}
}
