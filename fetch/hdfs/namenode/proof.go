package namenode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"rankfs/meta"
)

// A proof authenticates this client to a namenode.
type proof struct {
	who   string
	token []byte
	seal  *seal // with the key that is in the token
}

// key gets a proof for a service.
func (t *tickets) key(ctx context.Context, service, realm string) (proof, error) {
	select {
	case t.lock <- struct{}{}:
	case <-ctx.Done():
		return proof{}, context.Cause(ctx)
	}
	type result struct {
		proof
		err error
	}
	done := make(chan result, 1)
	t.wg.Go(func() {
		defer func() { <-t.lock }()
		p, err := t.ask(service, realm)
		t.none.set(err)
		done <- result{p, err}
	})
	select {
	case r := <-done:
		return r.proof, r.err
	case <-ctx.Done():
		return proof{}, fmt.Errorf("kerberos ticket for %s: %w", service, context.Cause(ctx))
	}
}

// ask gets a proof from the KDC, and logs in first if need be. An earlier login may
// have become invalid without the library knowing it, so if it fails it is dropped, and
// ask logs in anew, once.
func (t *tickets) ask(service, realm string) (proof, error) {
	for again := false; ; again = true {
		fresh, err := t.login(service, realm)
		if err != nil {
			return proof{}, final(fmt.Errorf("kerberos: %w: %v", syscall.EACCES, err))
		}
		ticket, key, err := t.krb.GetServiceTicket(service)
		if err == nil {
			return t.proof(ticket, key)
		}
		if fresh || again || unreachable(err) {
			return proof{}, t.refused(service, err)
		}
		t.forget()
	}
}

func unreachable(err error) bool {
	var e krberror.Krberror
	return errors.As(err, &e) && e.RootCause == krberror.NetworkingError
}

func (t *tickets) refused(service string, err error) error {
	if unreachable(err) {
		return fmt.Errorf("kerberos ticket for %s: %w; does the KDC that %s names run?", service, err, t.Conf)
	}
	try := fmt.Sprintf("kinit -kt %s %s", t.Keytab, t.Principal)
	if t.cache != nil {
		try = "klist -c " + t.cache.path
	}
	return final(fmt.Errorf("kerberos ticket for %s: %w: %w; see what '%s' says", service, syscall.EACCES, err, try))
}

// login makes a client of the KDC, or takes the one that is there.
func (t *tickets) login(service, realm string) (fresh bool, err error) {
	if t.cache != nil && t.cache.changed() {
		t.forget()
	}
	if t.krb != nil {
		return false, nil
	}
	conf, err := config.Load(t.Conf)
	if err != nil {
		return false, fmt.Errorf("%s: %s", t.Conf, meta.WhyNot(err))
	}
	if _, host, _ := strings.Cut(service, "/"); realm != "" {
		conf.DomainRealm[host] = realm
	}
	t.conf = conf
	if t.cache == nil {
		t.krb, err = t.fromKeytab(conf)
		return true, err
	}
	t.krb, err = t.cache.login(conf)
	if err == nil && !t.kept {
		t.kept = true
		t.wg.Go(t.keep)
	}
	return true, err
}

func (t *tickets) fromKeytab(conf *config.Config) (krb *client.Client, err error) {
	defer unbroken(t.Keytab, &err)
	keys, err := keytab.Load(t.Keytab)
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %s; make it anew, or let this user read it", t.Keytab, meta.WhyNot(err))
	}
	user, realm, _ := strings.Cut(t.Principal, "@")
	if realm == "" {
		realm = conf.LibDefaults.DefaultRealm
	}
	return client.NewWithKeytab(user, realm, keys, conf, client.DisablePAFXFAST(true)), nil
}

// GSSAPI's flags of a connection, the object id of its Kerberos mechanism, and
// the id of the token that opens it (RFC 4121, 4.1).
const confidential, intact = 16, 32

var opening = []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 1, 0}

// proof makes a new key and the token that carries it.
func (t *tickets) proof(ticket messages.Ticket, key types.EncryptionKey) (proof, error) {
	who := t.krb.Credentials
	auth, err := types.NewAuthenticator(who.Domain(), who.CName())
	if err == nil {
		err = auth.GenerateSeqNumberAndSubKey(key.KeyType, len(key.KeyValue))
	}
	if err != nil {
		return proof{}, final(err)
	}
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: flags(confidential | intact)}
	req, err := messages.NewAPReq(ticket, key, auth)
	if err != nil {
		return proof{}, final(err)
	}
	b, err := req.Marshal()
	if err != nil {
		return proof{}, final(err)
	}
	s, err := newSeal(auth.SubKey, uint64(auth.SeqNumber))
	if err != nil {
		return proof{}, final(err)
	}
	return proof{name(who), asn1tools.AddASNAppTag(slices.Concat(opening, b), 0), s}, nil
}

// flags are the checksum of a token that opens a connection: no binding to the
// channel below.
func flags(f uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 16)
	b = append(b, make([]byte, 16)...)
	return binary.LittleEndian.AppendUint32(b, f)
}

func name(who *credentials.Credentials) string { return who.UserName() + "@" + who.Domain() }
