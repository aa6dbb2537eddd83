package control

import (
	"cmp"
	"encoding/json"
	"strings"
)

// acts has what each route does that may be refused, as a refusal says it.
var acts = map[string]string{
	"plan":         "settle plan of",
	"policy":       "set cache policy",
	"queue-policy": "set queue policy",
	"warm":         "warm up",
	"pool-job":     "show job",
	"pool-stage":   "show stage",
	"make-pool":    "make",
	"pool-quota":   "set quota of",
	"seal-stage":   "seal",
	"reset-stage":  "reset",
	"drop-pool":    "remove",
	"remove":       "remove dataset",
	"create":       "create dataset",
	"refresh":      "refresh dataset",
	"verify":       "verify dataset",
	"token":        "create token",
	"tokens":       "list tokens",
	"drop-token":   "remove token",
	"drain":        "drain node",
	"remove-node":  "remove node",
	"promote-node": "promote node",
	"reset-queue":  "reset queue of",
	"drop-queue":   "remove queue of",
	"pin":          "pin",
	"evict":        "evict",
	"learn-trace":  "learn trace of",
	"forget-trace": "forget trace of",
}

// actOf says what a request asks for, and with what. One that cannot be read says what its
// route does.
func actOf(route string, request []byte) string {
	var r struct {
		Name, View, Node, For, Tier string
		Drain, Unsettle             bool
	}
	_ = json.Unmarshal(request, &r)
	act := acts[route]
	switch {
	case route == "plan" && r.Unsettle:
		act = "unsettle plan of"
	case route == "pin" && r.Tier == "":
		act = "unpin"
	case route == "drain" && !r.Drain:
		act = "undrain node"
	}
	return strings.TrimSpace(act + " " + cmp.Or(r.Name, r.View, r.Node, r.For))
}
