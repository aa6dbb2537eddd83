package namenode

import "sync"

// An identity is what namenodes know this client by: an id, and a user, whom Kerberos
// has tickets for. The lock guards the user's name.
type identity struct {
	config  Config
	id      []byte
	tickets *tickets // nil without Kerberos

	mu struct {
		sync.Mutex
		who string // the user name that namenodes know this client by
	}
}

// who is the name by which the namenode knows the user.
func (u *identity) who() string {
	if u.config.ActFor != "" {
		return u.config.ActFor
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.mu.who
}

func (u *identity) setWho(who string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.who = who
}
