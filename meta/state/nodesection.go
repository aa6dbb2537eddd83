package state

import "strings"

func (*nodes) commands() []command {
	return []command{
		{kind: 4, blank: blank[Admit], by: leaders},
		{kind: 5, blank: blank[Move], by: owns},
		{kind: 6, blank: blank[Drain], by: operators},
		{kind: 7, blank: blank[Remove], by: operators},
		{kind: 8, blank: blank[Health], by: owns},
		{kind: 9, blank: blank[Begin], by: owns},
		{kind: 22, blank: blank[Promote], by: members, since: Signed},
		{kind: 36, blank: blank[OfferPool], by: owns, since: Signed},
	}
}

func (t *nodes) share() sharer { return &nodes{t.table.share(), t.removed.share()} }

func (t *nodes) over() bool { return t.len() > MaxNodes || t.removed.len() > MaxRemoved }

func (t *nodes) write(f *frameWriter) {
	for _, n := range sorted(&t.table) {
		f.json('n', n)
	}
	for id, host := range sorted(&t.removed) {
		f.frame('r', []byte(id+" "+host))
	}
}

func (*nodes) restore(in *restorer) frames { return frames{'n': each(in.node), 'r': in.removed} }

func (in *restorer) node(n Node) error {
	role := n.Role
	n.Role = ""
	offers := must(n.Pool >= 0 && (n.Pool == 0 && !n.PoolFull || in.s.version() >= Signed), errWrong)
	called := must(n.Called == "" || in.s.version() >= Signed, errWrong)
	if err := first(n.check(), checkRole(role, in.s.version()), n.checkWish(in.s), offers, called, checkCalled(n.Called), in.newID(n.ID)); err != nil {
		return err
	}
	n.Role = role
	in.s.nodes().set(n.ID, n)
	return nil
}

func (in *restorer) removed(payload []byte) error {
	id, host, _ := strings.Cut(string(payload), " ")
	if err := first(checkID(id), checkText("host", host, maxText), in.newID(id), must(in.s.nodes().len() > 0, errWrong)); err != nil {
		return err
	}
	in.s.nodes().removed.set(id, host)
	return nil
}

func (in *restorer) newID(id string) error {
	_, member := in.s.nodes().get(id)
	_, removed := in.s.nodes().removed.get(id)
	return must(!member && !removed, errTwice)
}
