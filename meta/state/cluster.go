package state

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"rankfs/meta"
)

// A Cluster is told from others by its id and by whom it trusts.
type Cluster struct {
	ID string `json:",omitempty"`
	CA string `json:",omitempty"` // fingerprint of the certificate of its authority
}

// Found begins a cluster, once.
type Found struct {
	Entry
	Cluster
}

func (*Found) kind() kind { return kindFound }

func (c *Found) check() error {
	return first(checkText("cluster id", c.ID, maxText), checkText("fingerprint", c.CA, maxText))
}

func (c *Found) apply(s *state) (Result, error) {
	switch s.Cluster {
	case c.Cluster:
		return Result{}, nil
	case Cluster{}:
		s.Cluster = c.Cluster
		if said := versionSaid(c); said > Oldest {
			s.Version = said
		}
		s.changed.cluster = true
		return Result{}, nil
	}
	return Result{}, fmt.Errorf("cluster %s %w: it was founded before", s.Cluster.ID, meta.ErrExist)
}

// A Token lets so many nodes in until it expires. Whoever has the secret whose
// SHA-256 is Hash may redeem it. As a command it makes the token.
type Token struct {
	Entry
	Hash    string // 64 lower-case hexadecimal digits
	Expires int64  // nanoseconds since 1970
	Uses    int
	Used    int  `json:",omitempty"` // zero in a command
	Role    Role `json:",omitempty"` // of those whom it lets in; none before version 4
}

func (*Token) kind() kind { return kindToken }

func (c *Token) version() int {
	if c.Role != "" {
		return max(Signed, c.Entry.version())
	}
	return c.Entry.version()
}

func (c *Token) check() error {
	if err := checkTokenHash(c.Hash); err != nil {
		return err
	}
	if c.Uses < 1 || c.Uses > MaxUses || c.Used != 0 {
		return fmt.Errorf("token for %d nodes %w: use 1 to %d", c.Uses, meta.ErrInvalid, MaxUses)
	}
	return checkRole(c.Role, c.version())
}

func checkTokenHash(s string) error {
	if len(s) != 64 || !isHex(s) {
		return fmt.Errorf("hash of a token %w: it has 64 lower-case hexadecimal digits", meta.ErrInvalid)
	}
	return nil
}

func (c *Token) apply(s *state) (Result, error) {
	old, ok := s.tokens.get(c.Hash)
	switch {
	case ok && old.Expires == c.Expires && old.Uses == c.Uses && old.Role == c.Role:
		return Result{}, nil
	case ok:
		return Result{}, meta.Worded(meta.ErrExist, "token exists already with other terms: make another")
	case c.Expires <= s.Now:
		return Result{}, fmt.Errorf("token %w: it has expired already; look at the clocks of the nodes", meta.ErrInvalid)
	case s.tokens.len()-s.spent >= MaxTokens || s.tokens.len() >= MaxSpent:
		return Result{}, fmt.Errorf("token %w: there are %d; wait until some expire, or make one with more uses",
			meta.ErrBusy, s.tokens.len())
	}
	s.addToken(*c)
	s.changed.cluster = true
	return Result{}, nil
}

func (t *Token) isSpent() bool { return t.Used == t.Uses }

// addToken enters a token or replaces it.
func (s *state) addToken(t Token) {
	if old, ok := s.tokens.get(t.Hash); ok && old.isSpent() {
		s.spent--
	}
	if t.isSpent() {
		s.spent++
	}
	if s.tokens.len() == 0 {
		s.expiry = math.MaxInt64
	}
	s.expiry = min(s.expiry, t.Expires)
	s.tokens.set(strings.Clone(t.Hash), t)
}

func (s *state) dropExpired() {
	s.expiry = math.MaxInt64
	for hash, t := range s.tokens.m {
		if s.Now < t.Expires {
			s.expiry = min(s.expiry, t.Expires)
			continue
		}
		if t.isSpent() {
			s.spent--
		}
		s.tokens.drop(hash)
		s.changed.cluster = true
	}
}

// redeem uses a token once, and says in which role that lets a node in.
func (s *state) redeem(hash string) (Role, error) {
	t, ok := s.tokens.get(hash)
	switch {
	case !ok:
		return "", fmt.Errorf("token %w: unknown or expired; ask for a new one", meta.ErrDenied)
	case t.isSpent():
		return "", meta.Worded(meta.ErrDenied, "token is not allowed any more: all %d uses are made; ask for a new one", t.Uses)
	}
	t.Used++
	s.addToken(t)
	return t.Role, nil
}

// DropToken ends a token before its time.
type DropToken struct {
	Entry
	Hash string
}

func (*DropToken) kind() kind { return kindDropToken }

func (c *DropToken) check() error { return checkTokenHash(c.Hash) }

// A dropped token is remembered as used up, so that the command that made it,
// arriving again, does not bring it back.
func (c *DropToken) apply(s *state) (Result, error) {
	t, ok := s.tokens.get(c.Hash)
	if !ok {
		return Result{}, fmt.Errorf("token %w: it may have expired", meta.ErrNotExist)
	}
	if !t.isSpent() {
		t.Used = t.Uses
		s.addToken(t)
		s.changed.cluster = true
	}
	return Result{}, nil
}

// Setting sets something for the whole cluster; an empty value takes it back.
type Setting struct {
	Entry
	Key, Value string
}

func (*Setting) kind() kind { return kindSetting }

func (c *Setting) check() error {
	if len(c.Value) > MaxSettingValue || !utf8.ValidString(c.Value) {
		return fmt.Errorf("value of setting %q %w: use up to %d bytes of UTF-8", shorten(c.Key), meta.ErrInvalid, MaxSettingValue)
	}
	return checkText("setting", c.Key, MaxSettingKey)
}

func (c *Setting) apply(s *state) (Result, error) {
	old, ok := s.settings.get(c.Key)
	switch {
	case old == c.Value:
		return Result{}, nil
	case c.Value == "":
		s.settings.drop(c.Key)
	case !ok && s.settings.len() >= MaxSettings:
		return Result{}, fmt.Errorf("setting %q %w: there are %d; take others back first", c.Key, meta.ErrBusy, MaxSettings)
	default:
		s.settings.set(c.Key, c.Value)
	}
	s.changed.cluster = true
	return Result{}, nil
}
