package state

import (
	"fmt"
	"unicode/utf8"

	"rankfs/meta"
)

const (
	MaxSettings     = 256
	MaxSettingKey   = 64
	MaxSettingValue = 4096
)

// settings are values by key.
type settings struct{ table[string, string] }

func (s *state) settings() *settings { return sectionOf[*settings](s) }

func (*settings) commands() []command {
	return []command{{kind: 20, blank: blank[Setting], by: operators}}
}

func (t *settings) share() sharer { return &settings{t.table.share()} }

func (t *settings) over() bool { return t.len() > MaxSettings }

type settingFrame struct{ Key, Value string }

func (t *settings) write(f *frameWriter) {
	for k, v := range sorted(&t.table) {
		f.json('s', settingFrame{k, v})
	}
}

func (*settings) restore(in *restorer) frames { return frames{'s': each(in.setting)} }

func (in *restorer) setting(frame settingFrame) error {
	set := Setting{Key: frame.Key, Value: frame.Value}
	_, twice := in.s.settings().get(frame.Key)
	if err := first(set.check(), must(!twice && frame.Value != "", errTwice)); err != nil {
		return err
	}
	in.s.settings().set(frame.Key, frame.Value)
	return nil
}

// Setting sets something for the whole cluster; an empty value takes it back.
type Setting struct {
	Entry
	Key, Value string
}

func (c *Setting) check() error {
	if len(c.Value) > MaxSettingValue || !utf8.ValidString(c.Value) {
		return fmt.Errorf("value of setting %q %w: use up to %d bytes of UTF-8", shorten(c.Key), meta.ErrInvalid, MaxSettingValue)
	}
	return checkText("setting", c.Key, MaxSettingKey)
}

func (c *Setting) apply(s *state) (Result, error) {
	old, ok := s.settings().get(c.Key)
	switch {
	case old == c.Value:
		return Result{}, nil
	case c.Value == "":
		s.settings().drop(c.Key)
	case !ok && s.settings().len() >= MaxSettings:
		return Result{}, fmt.Errorf("setting %q %w: there are %d; take others back first", c.Key, meta.ErrBusy, MaxSettings)
	default:
		s.settings().set(c.Key, c.Value)
	}
	s.changed.cluster = true
	return Result{}, nil
}

// Setting is the value of a key for the whole cluster, empty if it is not set.
func (m *Machine) Setting(key string) string {
	s, done := m.read()
	defer done()
	return s.settings().m[key]
}
