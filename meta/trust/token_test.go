package trust_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/trust"
)

var someAuthority = trust.Fingerprint{1, 2, 3, 31: 4}

func TestToken(t *testing.T) {
	token := trust.NewToken(someAuthority)
	text := token.Reveal()
	if !strings.HasPrefix(text, "rankfs2-") || text != strings.ToLower(text) || strings.ContainsAny(text[8:], "oilu") {
		t.Errorf("text is %s", text)
	}
	again, err := trust.ParseToken("\t" + text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if again.Authority() != someAuthority || again.Hash() != token.Hash() || again.Reveal() != text {
		t.Error("parsed is another token")
	}
	if other := trust.NewToken(someAuthority); other.Hash() == token.Hash() || other.Reveal() == text {
		t.Error("two tokens are one")
	}
	var zero trust.Token
	if zero.Reveal() != "" || zero.Authority() != (trust.Fingerprint{}) {
		t.Error("no token is a token")
	}
}

func TestTokenInvalid(t *testing.T) {
	text := trust.NewToken(someAuthority).Reveal()
	rows := []struct{ name, text, says string }{
		{"empty", "", "begins with"},
		{"of a later version", "rankfs3-" + text[8:], "begins with"},
		{"without prefix", text[8:], "begins with"},
		{"upper case", strings.ToUpper(text), "begins with"},
		{"upper case digits", text[:8] + strings.ToUpper(text[8:]), "character"},
		{"truncated", text[:len(text)-1], "copy all of it"},
		{"half", text[:len(text)/2], "copy all of it"},
		{"prefix alone", "rankfs2-", "copy all of it"},
		{"twice", text + text, "copy all of it"},
		{"with a line feed within", text[:40] + "\n" + text[41:], "character"},
		{"with a letter that is none", text[:40] + "o" + text[41:], "character"},
		{"of zeros but one", "rankfs2-" + strings.Repeat("0", 83) + "1", "character"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := trust.ParseToken(row.text)
			if !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("error is %v, want %q", err, row.says)
			}
		})
	}
}

// What a token proves is what it was asked to, and what the cluster keeps is
// neither the proof nor what makes one.
func TestProof(t *testing.T) {
	token := trust.NewToken(someAuthority)
	p := token.Prove([]byte("this"))
	if hash, err := p.Token([]byte("this")); err != nil || hash != token.Hash() {
		t.Errorf("its own proof: %x, %v", hash, err)
	}
	hash := token.Hash()
	for name, wrong := range map[string]trust.Proof{
		"nothing": {}, "its key alone": {Key: p.Key}, "the hash for the key": {Key: hash[:], Signature: p.Signature},
		"another's key": {Key: trust.NewToken(someAuthority).Prove(nil).Key, Signature: p.Signature},
		"a long key":    {Key: append(bytes.Clone(p.Key), 0), Signature: p.Signature},
	} {
		if _, err := wrong.Token([]byte("this")); !errors.Is(err, meta.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Token([]byte("that")); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("for something else: %v", err)
	}
}

// A token of the release before is read, and has the hash that it had.
func TestPlainToken(t *testing.T) {
	made := trust.NewPlainToken(someAuthority)
	token, err := trust.ParseToken(made.Reveal())
	if err != nil || !token.IsPlain() || !strings.HasPrefix(made.Reveal(), "rankfs1-") || trust.NewToken(someAuthority).IsPlain() {
		t.Fatal(err, made.Reveal())
	}
	if want := sha256.Sum256([]byte("rankfs token\x00" + made.Reveal())); token.Hash() != want {
		t.Errorf("its hash is %x, not %x", token.Hash(), want)
	}
}

// Each wrong character, and each pair swapped, is found.
func TestTokenTypos(t *testing.T) {
	text := trust.NewToken(someAuthority).Reveal()
	bad := func(s string) {
		if _, err := trust.ParseToken(s); err == nil && s != text {
			t.Errorf("%s is taken for %s", s, text)
		}
	}
	for i := range len(text) {
		for _, r := range "0123456789abcdefghijklmnopqrstuvwxyz-" {
			bad(text[:i] + string(r) + text[i+1:])
		}
		if i > 0 {
			bad(text[:i-1] + text[i:i+1] + text[i-1:i] + text[i+1:])
		}
	}
}

// No way of printing a token, or what contains one, prints it.
func TestTokenIsNotPrinted(t *testing.T) {
	token := trust.NewToken(someAuthority)
	type request struct {
		Public trust.Token
		hidden trust.Token
	}
	values := []any{token, &token, request{token, token}, &request{token, token}, []trust.Token{token}, map[string]trust.Token{"a": token}, fmt.Errorf("join: %v", token)}
	var out bytes.Buffer
	logs := []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))}
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%p", "%T", "%t"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		fmt.Fprintln(&out, value)
		if text, err := json.Marshal(value); err == nil {
			out.Write(text)
		}
		for _, log := range logs {
			log.Info("a token", "value", value)
		}
	}
	text := out.String()
	secret := token.Reveal()[8 : 8+25] // the secret's digits
	raw := fmt.Sprint(trust.Secret(token))
	for _, leak := range []string{secret, raw, strings.Trim(raw, "[]"), fmt.Sprintf("%x", trust.Secret(token)), strings.ReplaceAll(raw, " ", ",")} {
		if strings.Contains(text, leak) {
			t.Errorf("it was printed as %s", leak)
		}
	}
	if !strings.Contains(text, "rankfs2-(redacted)") {
		t.Error("nothing was printed")
	}
}

// Errors about what is nearly a token do not repeat it.
func TestTokenErrorsAreSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := trust.NewToken(someAuthority).Reveal()
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		cut := rapid.IntRange(0, 3).Draw(t, "cut")
		text = text[:at] + "!" + text[min(len(text), at+cut):]
		_, err := trust.ParseToken(text)
		if err == nil {
			t.Fatal("it was taken")
		}
		for i := 8; i+8 < len(text); i++ {
			if strings.Contains(err.Error(), text[i:i+8]) {
				t.Fatalf("%v repeats %s", err, text[i:i+8])
			}
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(trust.NewToken(someAuthority).Reveal())
	f.Add("rankfs2-" + strings.Repeat("0", 84))
	f.Add("rankfs2-")
	f.Add(" rankfs2-\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := trust.ParseToken(text)
		if err == nil && token.Reveal() != strings.TrimSpace(text) {
			t.Errorf("%q is parsed as %q", text, token.Reveal())
		}
	})
}
