package namenode

import (
	"context"
	"crypto/tls"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
)

// A web is WebHDFS of one namenode: another way to make the same calls. It lacks the
// keys of connections to datanodes (dfs.encrypt.data.transfer), kinds of storage, and
// pages of a listing with locations: locations take a request for each file.
type web struct {
	ctx  context.Context // of its calls
	user *identity
	url  *url.URL // scheme and HOST:PORT
	http http.Client
}

// maxLocating bounds the files that are located at a time.
const maxLocating = 8

func newWeb(ctx context.Context, user *identity, addr string) *web {
	u, _ := webURL(addr) // Config is valid
	return &web{ctx: ctx, user: user, url: u, http: http.Client{
		Transport: &http.Transport{
			DialContext:         user.config.Dial,
			TLSClientConfig:     &tls.Config{RootCAs: user.config.Roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: maxLocating,
			IdleConnTimeout:     maxIdle,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *web) close() { w.http.CloseIdleConnections() }

// get puts one question about a path, and fills into. An error is a
// brokenError unless the namenode itself says no.
func (w *web) get(ctx context.Context, op, path string, query url.Values, into any) error {
	r, err := w.request(ctx, op, path, query)
	if err != nil {
		return err
	}
	answer, err := w.http.Do(r)
	if err != nil {
		var told *url.Error // repeats the question
		if errors.As(err, &told) {
			err = told.Err
		}
		return &brokenError{err}
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxFrame+1))
	switch {
	case err != nil:
		return &brokenError{err}
	case len(b) > maxFrame:
		return &brokenError{fmt.Errorf("reply of over %d bytes", maxFrame)}
	case answer.StatusCode != http.StatusOK:
		return w.refusal(answer, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return &brokenError{fmt.Errorf("reply to %s: %w; is this a namenode's web port?", op, err)}
	}
	return nil
}

func (w *web) request(ctx context.Context, op, path string, query url.Values) (*http.Request, error) {
	u := *w.url
	u.Path, u.RawPath = webRoot+path, webRoot+escape(path)
	query.Set("op", op)
	if who := w.user.config.ActFor; who != "" {
		query.Set("doas", who)
	}
	proof := ""
	if w.user.tickets != nil {
		var err error
		if proof, err = w.negotiate(ctx); err != nil {
			return nil, err
		}
	} else {
		query.Set("user.name", w.user.config.User)
	}
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err == nil && proof != "" {
		r.Header.Set("Authorization", proof)
	}
	return r, err
}

const webRoot = "/webhdfs/v1"

// escape encodes every character that a server may interpret: a + may be taken for a
// space, and the text after a ; for a parameter.
func escape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(p), "+", "%2B")
	}
	return strings.Join(parts, "/")
}

// negotiate is the header that authenticates this client, by RFC 4559. It is valid for
// one request.
func (w *web) negotiate(ctx context.Context) (string, error) {
	service, realm, err := w.user.config.Kerberos.webService(w.url.Host)
	if err != nil {
		return "", &brokenError{err}
	}
	k, err := w.user.tickets.key(ctx, service, realm)
	if err != nil {
		return "", &brokenError{err}
	}
	w.user.setWho(k.who)
	token, err := spnego(k.token)
	return "Negotiate " + base64.StdEncoding.EncodeToString(token), err
}

var (
	kerberosID = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}
	spnegoID   = []byte{6, 6, 0x2b, 6, 1, 5, 5, 2}
)

// spnego wraps a token of Kerberos as the first of a negotiation that knows
// nothing else (RFC 4178, 4.2.1).
func spnego(token []byte) ([]byte, error) {
	b, err := asn1.Marshal(struct {
		Mechanisms []asn1.ObjectIdentifier `asn1:"explicit,tag:0"`
		Token      []byte                  `asn1:"explicit,tag:2"`
	}{[]asn1.ObjectIdentifier{kerberosID}, token})
	if err != nil {
		return nil, final(err)
	}
	b, err = asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: b})
	if err != nil {
		return nil, final(err)
	}
	return asn1tools.AddASNAppTag(append(spnegoID[:len(spnegoID):len(spnegoID)], b...), 0), nil
}

// refusal is the namenode's exception in a reply, or the message of its web server.
func (w *web) refusal(answer *http.Response, body []byte) error {
	var told struct {
		RemoteException struct{ Exception, JavaClassName, Message string }
	}
	if json.Unmarshal(body, &told) == nil && told.RemoteException.Exception != "" {
		e := told.RemoteException
		class := e.JavaClassName
		if class == "" {
			class = e.Exception
		}
		text, _, _ := strings.Cut(e.Message, "\n")
		return &remoteError{class: clean(class), text: clean(text)}
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return &brokenError{fmt.Errorf("its web port refuses who we are (%s)", clean(answer.Status))}
	}
	return &brokenError{fmt.Errorf("its web port answers %q", clean(answer.Status))}
}
