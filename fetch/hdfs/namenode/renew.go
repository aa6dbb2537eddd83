package namenode

import "time"

// minWait keeps a KDC that does not renew from being asked all the time.
const minWait = 30 * time.Second

// keep renews the ticket of the cache before it ends. Calls cannot be relied on for
// that: none may need a new connection in time. With a keytab the library renews
// tickets by itself.
func (t *tickets) keep() {
	for {
		left := t.left()
		wait := time.NewTimer(max(left*2/3, minWait))
		select {
		case <-wait.C:
		case <-t.ctx.Done():
			wait.Stop()
			return
		}
		if err := t.renew(); err != nil && left > 0 { // once it ended, calls say so
			t.log.Warn("kerberos ticket is not renewed", "cache", t.cache.path, "cause", err)
		}
	}
}

// left is the time for which the cache's ticket is valid.
func (t *tickets) left() time.Duration {
	t.lock <- struct{}{} // it is never held for long
	defer func() { <-t.lock }()
	return time.Until(t.cache.ticket().EndTime)
}

func (t *tickets) renew() error {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	krb, err := t.cache.login(t.conf)
	if err != nil {
		return err
	}
	defer krb.Destroy()
	if err := t.cache.renew(krb); err != nil {
		return err
	}
	t.forget() // the next call logs in with the renewed ticket
	return nil
}
