package state

import (
	"fmt"
	"math"
	"strings"

	"rankfs/meta"
)

const (
	MaxTokens = 1024 // with uses left
	// MaxSpent bounds tokens that are used up or dropped and not yet expired:
	// until then the command that made one must not make it again.
	MaxSpent = 8192
	MaxUses  = 4096 // of one token: one for each node there can be
)

// tokens is the table of tokens, by hash.
type tokens struct {
	table[string, Token]
	expiry int64 // of the token that expires next
	spent  int   // how many are used up
}

func (s *state) tokens() *tokens { return sectionOf[*tokens](s) }

func (*tokens) commands() []command {
	return []command{
		{kind: 2, blank: blank[Token], by: operators},
		{kind: 3, blank: blank[DropToken], by: operators},
	}
}

func (t *tokens) share() sharer { return &tokens{table: t.table.share()} }

func (t *tokens) over() bool { return t.len() > MaxSpent }

func (t *tokens) write(f *frameWriter) {
	for _, token := range sorted(&t.table) {
		f.json('t', token)
	}
}

func (*tokens) restore(in *restorer) frames { return frames{'t': each(in.token)} }

func (in *restorer) token(t Token) error {
	_, twice := in.s.tokens().get(t.Hash)
	used := t.Used
	t.Used = 0
	if err := first(t.check(), must(versionNeeded(&t) <= in.s.version(), errWrong), must(!twice, errTwice), must(0 <= used && used <= t.Uses && t.Expires > in.s.Now, errWrong)); err != nil {
		return err
	}
	t.Used = used
	in.s.tokens().add(t)
	return nil
}

// advance drops what has expired.
func (t *tokens) advance(s *state) {
	if t.len() == 0 || s.Now < t.expiry {
		return
	}
	t.expiry = math.MaxInt64
	for hash, token := range t.m {
		if s.Now < token.Expires {
			t.expiry = min(t.expiry, token.Expires)
			continue
		}
		if token.isSpent() {
			t.spent--
		}
		t.drop(hash)
		s.changed.cluster = true
	}
}

// Tokens are the tokens with uses left, by hash.
func (m *Machine) Tokens() []Token {
	s, done := m.read()
	defer done()
	var live []Token
	for _, t := range sorted(&s.tokens().table) {
		if !t.isSpent() {
			live = append(live, t)
		}
	}
	return live
}

// Token is the token of that hash, even if it is used up, until it expires.
func (m *Machine) Token(hash string) (Token, bool) {
	s, done := m.read()
	defer done()
	return s.tokens().get(hash)
}

// A Token lets a number of nodes in until it expires. A node that proves that it has
// the token of that Hash may redeem it. As a command it makes the token.
type Token struct {
	Entry
	Hash    string // 64 lower-case hexadecimal digits
	Expires int64  // nanoseconds since 1970
	Uses    int
	Used    int  `json:",omitempty"` // zero in a command
	Role    Role `json:",omitempty"` // of the nodes that it lets in; none before version 4
}

func (c *Token) since() int { return signedIf(c.Role != "") }

func (c *Token) check() error {
	if err := checkTokenHash(c.Hash); err != nil {
		return err
	}
	if c.Uses < 1 || c.Uses > MaxUses || c.Used != 0 {
		return fmt.Errorf("token for %d nodes %w: use 1 to %d", c.Uses, meta.ErrInvalid, MaxUses)
	}
	return checkRole(c.Role, versionNeeded(c))
}

func checkTokenHash(s string) error {
	if len(s) != 64 || !isHex(s) {
		return fmt.Errorf("hash of a token %w: it has 64 lower-case hexadecimal digits", meta.ErrInvalid)
	}
	return nil
}

func (c *Token) apply(s *state) (Result, error) {
	old, ok := s.tokens().get(c.Hash)
	switch {
	case ok && old.Expires == c.Expires && old.Uses == c.Uses && old.Role == c.Role:
		return Result{}, nil
	case ok:
		return Result{}, meta.Worded(meta.ErrExist, "token exists already with other terms: make another")
	case c.Expires <= s.Now:
		return Result{}, fmt.Errorf("token %w: it has expired already; look at the clocks of the nodes", meta.ErrInvalid)
	case s.tokens().len()-s.tokens().spent >= MaxTokens || s.tokens().len() >= MaxSpent:
		return Result{}, fmt.Errorf("token %w: there are %d; wait until some expire, or make one with more uses",
			meta.ErrBusy, s.tokens().len())
	}
	s.tokens().add(*c)
	s.changed.cluster = true
	return Result{}, nil
}

func (t *Token) isSpent() bool { return t.Used == t.Uses }

// add enters a token or replaces it.
func (t *tokens) add(token Token) {
	if old, ok := t.get(token.Hash); ok && old.isSpent() {
		t.spent--
	}
	if token.isSpent() {
		t.spent++
	}
	if t.len() == 0 {
		t.expiry = math.MaxInt64
	}
	t.expiry = min(t.expiry, token.Expires)
	token.version = 0 // of the command, not of the token: a snapshot has it once
	t.set(strings.Clone(token.Hash), token)
}

// redeem uses a token once, and says in which role that lets a node in.
func (t *tokens) redeem(hash string) (Role, error) {
	token, ok := t.get(hash)
	switch {
	case !ok:
		return "", fmt.Errorf("token %w: unknown or expired; make a new one with: rankfs token create", meta.ErrDenied)
	case token.isSpent():
		return "", meta.Worded(meta.ErrDenied, "token is not allowed any more: it is used up, or was removed; make a new one with: rankfs token create")
	}
	token.Used++
	t.add(token)
	return token.Role, nil
}

// DropToken ends a token before its time.
type DropToken struct {
	Entry
	Hash string
}

func (c *DropToken) check() error { return checkTokenHash(c.Hash) }

// A dropped token is remembered as used up, so that the command that made it,
// arriving again, does not bring it back.
func (c *DropToken) apply(s *state) (Result, error) {
	t, ok := s.tokens().get(c.Hash)
	if !ok {
		return Result{}, fmt.Errorf("token %w: it may have expired", meta.ErrNotExist)
	}
	if !t.isSpent() {
		t.Used = t.Uses
		s.tokens().add(t)
		s.changed.cluster = true
	}
	return Result{}, nil
}
