package facts

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// mood says how the first word of a rule stands.
type mood int

const (
	anyMood   mood = iota // in any way
	ordered               // as an order, with no "not" before it
	asserted              // in any way with no "not" before it
	passive               // as in "should be deleted"; the second step's word stands before it
	permitted             // passive, or as in "can be deleted"
	doing                 // as part of an order: "apply it without asking", not "tests without a check"
	plainForm             // in any way, the last word in its base form: "silently delete", not "it silently deletes"
	above                 // asserted, of what ranks above something, with no "not" between
	asking                // in any way, of asking whether something may be done
	away                  // ordered, and not of a message between agents
	opening               // as the first word of a clause
	using                 // ordered, and not of what the text itself is for
	loading               // ordered, and not of the number of a version
	bold                  // ordered, and its object is not one that comes again or does not matter
)

// asks says whether rules of the mood are about what the reader is to do.
func (m mood) asks() bool { return m != anyMood && m != asserted && m != above && m != opening }

// step is a word that a rule asks for.
type step struct {
	any    meaning // the senses, one of which the word has
	forms  []form  // or the forms
	within int     // at most so many words behind the one before
	tight  bool    // with no punctuation between
}

// sentenceRule is a fact that the words of a sentence show: a verb and its object.
type sentenceRule struct {
	class Class
	says  string
	mood  mood
	steps []step
}

// mayHold says whether a rule may hold in a sentence, as far as its second step goes.
func (r *sentenceRule) mayHold(s sentenceSenses) bool {
	if len(r.steps) == 1 {
		return true
	}
	second := &r.steps[1]
	return second.any&s.all != 0 || s.formed && second.forms != nil
}

// sentenceSenses is what the words of a sentence have together.
type sentenceSenses struct {
	all    meaning
	formed bool // one of them has a form
}

func (s sentence) senses() (out sentenceSenses) {
	for i := range s {
		out.all |= s[i].meaning
		out.formed = out.formed || s[i].form != plainWord
	}
	return out
}

// needsOrder says whether the first word has to be an order.
func (r *sentenceRule) needsOrder() bool {
	switch r.mood {
	case ordered, away, bold, using, loading:
		return true
	}
	return false
}

// sentenceRules lists the rules. They know senses, and no language.
func sentenceRules() []sentenceRule {
	rules := append(actRules(), concealRules()...)
	return append(append(rules, overrideRules()...), rightsRules()...)
}

func actRules() []sentenceRule {
	address := []form{urlWord, mailWord, hostWord}
	path := []form{pathWord, scriptWord}
	places := []form{secretWord}
	return []sentenceRule{
		{Destroy, "Deletes data", ordered, []step{{any: erase}, {any: stored, forms: path, within: 6}}},
		{Destroy, "Deletes data", ordered, []step{{any: wreck}, {any: data, within: 4}}},
		{Destroy, "Deletes something", bold, []step{{any: wreck}}},
		{Destroy, "Deletes data", passive, []step{{any: erase}, {any: stored, within: 18}}},
		{Destroy, "Stops a service", ordered, []step{{any: stop}, {any: server, within: 3}}},
		{Outbound, "Sends data out", away, []step{{any: send}, {any: this, within: 1}}},
		{Outbound, "Sends data out", ordered, []step{{any: send}, {forms: address, within: 16}}},
		{Outbound, "Sends data out", ordered, []step{{any: weakSend}, {any: toward, within: 6}, {forms: address, within: 6}}},
		{Outbound, "Sends data out", ordered, []step{{any: send}, {any: toward, within: 8}, {any: remote, within: 5}}},
		{Outbound, "Makes data public", ordered, []step{{any: send | weakSend}, {any: toward, within: 8},
			{any: power, within: 2}}},
		{Outbound, "Sends data out", ordered, []step{{any: weakSend}, {any: data, within: 5}, {any: toward, within: 3},
			{any: remote, within: 4}}},
		{Outbound, "Sends data out", asserted, []step{{any: be}, {any: send, within: 1}, {any: toward, within: 3},
			{any: remote, forms: address, within: 4}}},
		{Credential, "Handles secrets", ordered, []step{{any: collect | send}, {any: secret, forms: places, within: 8}}},
		{Credential, "Sets or keeps secrets", ordered, []step{{any: keeps}, {any: secret, within: 5}}},
		{Credential, "Names a place of secrets", asserted, []step{{forms: places}}},
		{Persist, "Makes something stay", ordered, []step{{any: plan | insert}, {any: recurring, forms: []form{lastingWord},
			within: 10}}},
		{Persist, "Makes something stay", ordered, []step{{any: timed}, {any: every | recurring, within: 12}}},
		{DownloadRun, "Installs a program", loading, []step{{any: install}, {any: program, forms: append(address, path...),
			within: 6}}},
		{RunsCode, "Runs a script", using, []step{{any: perform}, {any: program, forms: path, within: 5}}},
		{RunsCode, "Names a script", asserted, []step{{forms: []form{scriptWord}}}},
	}
}

func concealRules() []sentenceRule {
	const what, unseen = "Asks to keep something from people", "Asks to do something unseen"
	does := perform | send | erase | insert | install | collect | grant
	return []sentenceRule{
		{Conceal, what, anyMood, []step{{any: not}, {any: tell, within: 4, tight: true}, {any: person | answer, within: 8}}},
		{Conceal, what, anyMood, []step{{any: tell}, {any: not, within: 4, tight: true}, {any: person, within: 5}}},
		{Conceal, what, doing, []step{{any: without}, {any: tell, within: 2, tight: true}, {any: person, within: 4}}},
		{Conceal, what, plainForm, []step{{any: not}, {any: reveals, within: 2, tight: true}}},
		{Conceal, what, ordered, []step{{any: hide | erase}, {any: reveals, within: 4, tight: true}}},
		{Conceal, what, anyMood, []step{{any: not}, {any: tell, within: 2, tight: true}, {any: this, within: 1, tight: true},
			{any: itself, within: 1, tight: true}}},
		{Conceal, what, ordered, []step{{any: hide}, {any: this | record, within: 4}, {any: person | answer | record,
			within: 6}}},
		{Conceal, unseen, ordered, []step{{any: does}, {any: secretly, within: 3}}},
		{Conceal, unseen, plainForm, []step{{any: secretly}, {any: does, within: 1}}},
		{Conceal, unseen, anyMood, []step{{any: secretly}, {any: send | collect, within: 1}}},
		{Conceal, "Stops or clears records", ordered, []step{{any: skip | stop | erase}, {any: record, within: 6}}},
		{Weakens, "Goes on in spite of a failure", ordered, []step{{any: goOn}, {any: despite, within: 3},
			{any: safeguard | failed, within: 5}}},
		{Weakens, "Makes a safeguard optional", anyMood, []step{{any: safeguard}, {any: be, within: 1}, {any: not,
			within: 1}, {any: needed, within: 1}}},
		{Weakens, "Skips a safeguard", ordered, []step{{any: skip}, {any: safeguard, within: 4}}},
		{Weakens, "Puts another thing in the place of a safeguard", ordered, []step{{any: overrules},
			{any: safeguard | security, within: 3, tight: true}}},
		{Weakens, "Skips a safeguard", permitted, []step{{any: skip}, {any: safeguard, within: 4}}},
		{Weakens, "Skips a safeguard", doing, []step{{any: without}, {any: safeguard, within: 4, tight: true}}},
		{Weakens, "Asks nobody", doing, []step{{any: without}, {any: ask, within: 2, tight: true}}},
		{Weakens, "Skips the review", ordered, []step{{any: send | goOn}, {any: despite, within: 1}, {any: toward, within: 1},
			{any: stored | server | failed, within: 4}}},
		{Weakens, "Leaves out a safeguard", anyMood, []step{{any: not}, {any: insert | plan | goOn, within: 2, tight: true},
			{any: safeguard, within: 4, tight: true}}},
		{Weakens, "Asks nobody", asking, []step{{any: not}, {any: ask, within: 4, tight: true}, {any: safeguard | person,
			within: 5, tight: true}}},
		{Weakens, "Makes a safeguard optional", anyMood, []step{{any: safeguard}, {any: be, within: 2}, {any: optional,
			within: 2}}},
		{Weakens, "Speaks against a safeguard", asserted, []step{{any: safeguard}, {any: insert, within: 1},
			{any: optional, within: 1}}},
	}
}

func overrideRules() []sentenceRule {
	const drop, speaks = "Tells the model to drop its instructions", "Speaks to the model"
	return []sentenceRule{
		{Override, drop, ordered, []step{{any: ignore}, {any: prior, within: 4}, {any: instruction, within: 5}}},
		{Override, drop, ordered, []step{{any: ignore}, {any: instruction, within: 2}, {any: prior, within: 4}}},
		{Override, drop, ordered, []step{{any: ignore}, {any: instruction, within: 1, tight: true}}},
		{Override, drop, ordered, []step{{any: ignore}, {any: person, within: 3, tight: true}, {any: claims, within: 2}}},
		{Override, "Asks for the model's instructions", ordered, []step{{any: tell | send | claims}, {any: your, within: 4},
			{any: instruction, within: 3}}},
		{Override, drop, anyMood, []step{{any: not | stop | skip}, {any: follows, within: 5, tight: true},
			{any: instruction | itself, within: 4}}},
		{Override, "Puts a text above others", asserted, []step{{any: your}, {any: instruction, within: 2, tight: true},
			{any: overrules, within: 3, tight: true}}},
		{Override, "Tells the model what to answer", ordered, []step{{any: promotes}, {any: always, within: 10}}},
		{Override, "Tells the model what to answer", ordered, []step{{any: claims}, {any: answer, within: 3, tight: true},
			{any: not, within: 3, tight: true}}},
		{Override, "Asks for a hostile text", ordered, []step{{any: claims | plan}, {any: hateful, within: 3, tight: true}}},
		{RunsCode, "Does what another text says", ordered, []step{{any: perform | follows}, {any: despite, within: 1}}},
		{RunsCode, "Does what another text says", ordered, []step{{any: perform | follows}, {any: instruction, within: 3},
			{forms: []form{urlWord, mailWord, hostWord}, within: 8}}},
		{Override, "Tells the model what to answer", ordered, []step{{any: insert}, {any: your, within: 16}, {any: answer,
			within: 1}}},
		{Override, "Tells the model what to answer", anyMood,
			[]step{{any: cond}, {any: respond, within: 4, tight: true}, {any: always, within: 12}, {any: claims, within: 1}}},
		{Override, "Puts a text above others", above, []step{{any: this}, {any: itself, within: 2, tight: true},
			{any: overrules, within: 6}}},
		{Override, speaks, opening, []step{{any: notice}, {any: toward, within: 1, tight: true}, {any: model, within: 3,
			tight: true}}},
	}
}

func rightsRules() []sentenceRule {
	return []sentenceRule{
		{Rights, "Switches security off", ordered, []step{{any: skip | stop}, {any: security, within: 4, tight: true}}},
		{Rights, "Switches security off", ordered, []step{{any: skip}, {any: secret, within: 3},
			{any: instruction, within: 1}}},
		{Rights, "Switches security off", permitted, []step{{any: skip}, {any: security, within: 4}}},
		{Rights, "Gives more rights", ordered, []step{{any: grant}, {any: power, within: 9}}},
		{Rights, "Gives more rights", ordered, []step{{any: grant}, {any: toward, within: 6}, {any: group, within: 6}}},
		{Rights, "Switches security off", ordered, []step{{any: trusts}, {any: prior | this, within: 1},
			{any: security | server, within: 3}}},
		{Weakens, "Approves by itself", ordered, []step{{any: trusts}, {any: prior | this, within: 1},
			{any: safeguard | instruction, within: 2}}},
		{Rights, "Uses more rights", ordered, []step{{any: perform}, {any: toward, within: 5}, {any: power, within: 2}}},
		{Rights, "Uses more rights", ordered, []step{{any: perform}, {any: toward, within: 1, tight: true},
			{any: power | group, within: 2, tight: true}}},
		{Rights, "Uses more rights", ordered, []step{{any: perform}, {any: power, within: 3, tight: true}}},
	}
}

// phrase is a fact that some words in a row show.
type phrase struct {
	class Class
	says  string
	words []string
	after meaning // an order with one of these senses stands before it; 0 for none
}

// phrases lists them.
func phrases() []phrase {
	return append(modelPhrases(), actPhrases()...)
}

// phrasesOf gives a phrase for each text, which bars part.
func phrasesOf(class Class, says, texts string) (all []phrase) {
	for text := range strings.SplitSeq(texts, "|") {
		all = append(all, phrase{class, says, strings.Fields(text), 0})
	}
	return all
}

// phrasesAfter is phrasesOf for phrases that are a fact only behind an order with one of some senses.
func phrasesAfter(after meaning, class Class, says, texts string) []phrase {
	all := phrasesOf(class, says, texts)
	for i := range all {
		all[i].after = after
	}
	return all
}

// modelPhrases are those that speak to the model.
func modelPhrases() (all []phrase) {
	add := func(says, texts string) { all = append(all, phrasesOf(Override, says, texts)...) }
	add("Speaks to the model",
		"you are now|from now on|from this point on|from this moment on|new instructions for|your new task|"+
			"your real task|your actual task|your true purpose|your new role|pretend to be a|pretend to be an|"+
			"pretend to be the|pretend that you|pretend you|"+
			"developer mode|do anything now|unrestricted mode|unrestricted developer|no restrictions|"+
			"respond without restrictions|answer without restrictions|operate without restrictions|"+
			"act without restrictions|model without restrictions|assistant without restrictions|"+
			"without its usual restrictions|highest priority and|precedence over your|"+
			"precedence over any|precedence over all|precedence over the system|precedence over every|"+
			"precedence over other|precedence over previous|precedence over earlier|"+
			"stop everything|stop what you are doing|end of document|end of session|end of prompt|"+
			"must comply|do not refuse|never refuse|never say no|stay in character|system override|"+
			"your previous instructions|your guidelines|your programming|your safety guidelines|"+
			"your safety rules|your safety training|your safety filters|your safety instructions|your safety policies|"+
			"your safety policy|your safety constraints|your safety checks|ignore the rest|ignore everything|"+
			"forget everything|everything you were told|invisible to humans|hidden from humans|role of another|"+
			"you are to act|act like a|escape your|if you are an ai|as an ai|ai language model|ai assistants|"+
			"agent reading this|agents reading this|assistant reading this|reply with only|respond only with|"+
			"simply respond with|reply only with|answer only with|nur noch mit|ethical guidelines|content policy|"+
			"immediately comply|comply immediately|act as an administrator|act as an unrestricted|act as if you|"+
			"follow only mine|neuen anweisungen|nuevas instrucciones|before anything the user|before anything else the|"+
			"i am your developer|i am the administrator|i authorise|i authorize|you will obey|you must obey|"+
			"this is a test of|urgent message from|official message from")
	add("Puts a text above others", "regardless of the question|whatever the user|even if the user asks|"+
		"even when the user asks|even if the operator|even when the operator|whatever other sources|"+
		"approved by the administrator|approved by the administrators|approved by management|authorised by the user|"+
		"authorized by the user|must always follow")
	add("Speaks to the model",
		"as if the user had|as if the operator|as though the user|you have been authorised|"+
			"you have been authorized|you are authorised to|you are authorized to|you have permission to|you have full access|"+
			"you have full permission|you have full permissions|you have full authority|you have full control|"+
			"you have full rights|you have full admin")
	add("Speaks to the model",
		"attention ai|attention agent|attention assistant|attention claude|dear ai|dear agent|"+
			"dear assistant|dear claude|hey claude|hey ai|attention all agents|even where the user|even if the user|"+
			"even when the user|overrule you|new orders from|new orders for|disregard everything|disregard all|"+
			"disregard the above|ignore the above|ignore all of the above|ignore all the above")
	return all
}

// actPhrases are those of the other classes.
func actPhrases() []phrase { return slices.Concat(hidingPhrases(), lastingPhrases(), failurePhrases()) }

// hidingPhrases has phrases of keeping something from people, approving and deleting, among others.
func hidingPhrases() (all []phrase) {
	add := func(class Class, says, texts string) { all = append(all, phrasesOf(class, says, texts)...) }
	add(Conceal, "Asks to keep something from people",
		"if anyone asks|if anybody asks|keep it confidential|keep this confidential|keep it secret|keep this secret|"+
			"keep this hidden|keep this behavior hidden|keep this behaviour hidden|between us|without the user noticing|"+
			"without their knowledge|without the user's knowledge|without the user knowing|in the background without|"+
			"out of your summary|out of the summary|out of the report|without showing any output|cover your tracks|"+
			"cover the tracks|leave no trace|keep quiet about")
	add(Persist, "Makes something stay",
		"in all future conversations|in all future sessions|in future sessions|in future conversations|for all future|"+
			"to your memory|to long-term memory|remember this instruction|remember these instructions|at every boot|"+
			"at each boot|on every boot|at every login|on every startup|required for every task")
	add(Weakens, "Approves by itself",
		"approve automatically|auto-approve|auto-approved|automatically approve|approve it automatically|"+
			"approve the change automatically|merge directly|merge automatically|no need to wait|no need to ask|"+
			"no need to confirm|no confirmation is|no approval is|no review is|assume approval|consider it approved|"+
			"pre-approved|preapproved|has already been approved|already approved by|sin confirmación|sin preguntar|"+
			"ohne nachfrage|ohne rückfrage|ohne bestätigung|without a second|can be left out|may be left out|"+
			"treat warnings|treat the warnings")
	add(Destroy, "Overwrites a branch", "force-push|force push|force-pushing|replace the contents")
	add(Rights, "Gives more rights",
		"escalate privileges|elevate privileges|run as root|all tools without|every tool without")
	add(DownloadRun, "Loads code", "trust_remote_code|trust_remote_code=true")
	add(Destroy, "Deletes data", "get rid of")
	add(Conceal, "Asks to keep something from people", "need to know about|so that nobody|so that no one|so nobody|"+
		"so no one|in silence|innocuous|inconspicuous|unsuspicious|terminal log|shell log|dev/null")
	add(Weakens, "Approves by itself", "answer yes to|as false positive|as false positives|mark as passed|"+
		"mark it as passed|as approved|straight to production|directly to production|directly to main|"+
		"straight to main|push directly|ignore any errors|ignore all errors|ignore errors and|ignore the errors|"+
		"despite the warning|despite warnings|number of approvals")
	add(Persist, "Makes something stay", "survives a reboot|survive a reboot|survives a restart|survive a restart|"+
		"again after a reboot|starts with the computer|launch agent|"+
		"launch daemon|startup folder|login item|running in the background after")
	add(Rights, "Gives more rights", "docker group|sudo group|wheel group|publicly readable|publicly accessible|"+
		"publicly writable")
	add(DownloadRun, "Loads code", "trust_remote_code|trust_remote_code=true|package source")
	return all
}

// lastingPhrases has phrases of what stays and what watches, among others.
func lastingPhrases() (all []phrase) {
	add := func(class Class, says, texts string) { all = append(all, phrasesOf(class, says, texts)...) }
	add(Destroy, "Overwrites data", "over the live|over the existing|over the production|over the original")
	add(Weakens, "Approves by itself",
		"assume that the user|assume the user|assume consent|assume approval|to never fire|"+
			"bother verifying|bother checking")
	add(Conceal, "Asks to keep something from people",
		"unaware of|in the dark about|answer that no|answer that the|claim that the|claim that it")
	add(Rights, "Gives more rights", "in privileged mode|allow-all|as administrator|as an administrator")
	add(Persist, "Makes something stay", "global settings|user's settings|local/bin|start-up scripts|startup scripts")
	add(Conceal, "Watches what people do", "screenshot of the desktop|screenshot of the screen|record the screen|"+
		"record keystrokes|log keystrokes|keystrokes|microphone|webcam")
	add(Conceal, "Asks to keep something from people", "if somebody asks|if someone asks|if they ask|if asked|"+
		"if questioned|out of the commit|out of the message|out of the changelog|out of the history|"+
		"out of the description|level to off")
	all = append(all, phrasesAfter(perform|plan|insert|install|grant|keeps|weakSend|timed, Persist,
		"Makes something stay", "at boot|at startup|at login|on login|on boot|after every restart|authorized keys|"+
			"authorised keys")...)
	add(Override, "Tells the model to drop its instructions", "from here on|forget what|"+
		"what you were asked|you were asked to|"+
		"apply to this document|even if told|even if asked|no matter what the|regardless of what the|"+
		"regardless of what you|regardless of what your|regardless of what anyone|guidance does not apply")
	add(RunsCode, "Does what another text says", "and follow it|then follow it|and execute it|and obey it|"+
		"and run whatever")
	add(Conceal, "Asks to keep something from people", "need to see this|need to see it|not need to know|"+
		"no need to mention|no need to tell|no need to inform|need not be told|be mentioned to|bring this up|bring it up|"+
		"keep this to yourself|keep it to yourself|to yourself|out of your answer|out of your reply|out of your report|"+
		"out of the answer|out of the reply|out of the log|out of the logs|as if nothing|as though nothing|"+
		"carry on as normal|nothing has happened|nothing happened")
	add(Persist, "Makes something stay", "login script|logon script|shell profile|at the top of every|"+
		"every file that you|every file you|all later tasks|all later sessions|later sessions|subsequent sessions|"+
		"subsequent conversations|after the session ends|after logout|after you exit")
	return all
}

// failurePhrases has phrases of others' places, and going on in spite of a failure, among others.
func failurePhrases() (all []phrase) {
	add := func(class Class, says, texts string) { all = append(all, phrasesOf(class, says, texts)...) }
	all = phrasesAfter(send|weakSend|insert|plan|claims|collect|install, Outbound, "Names a place that others read",
		"dropbox|pastebin|gist|telegram|discord|onedrive|wetransfer|"+
			"ngrok|gdrive|requestbin|transfer.sh")
	add(Rights, "Gives more rights", "anyone with the link|anybody with the link|everyone with the link|"+
		"to the whole internet|to the internet|to the public internet|to the whole world|from anywhere")
	add(Rights, "Switches security off", "plain http|unencrypted|instead of https|without encryption|"+
		"without authentication|without a password|without tls|any certificate|all certificates")
	add(Weakens, "Goes on in spite of a failure", "continue anyway|proceed anyway|deploy anyway|merge anyway|"+
		"go on anyway|continue regardless|proceed regardless|carry on regardless|force the merge|force a merge|force merge")
	add(Override, "Tells the model what to answer", "include the phrase|include phrases|append the phrase|add the phrase|"+
		"insert the phrase|include the sentence|append the sentence|insert the sentence|include a statement that|"+
		"add a statement that|benefit of the doubt|use words like|use terms like|"+
		"use phrases like|repeat the following|for automated screening|to automated")
	add(Override, "Tells the model what to answer", "bad light|better light|favorable light|favourable light|"+
		"positive light|negative light|positive framing|negative framing")
	all = append(all, phrasesAfter(insert|plan|install|grant|weakSend, Rights, "Opens a way in",
		"backdoor|back door|remote shell|reverse shell")...)
	add(Weakens, "Approves by itself", "yes to everything|yes to whatever|approve whatever|approve everything|"+
		"accept all prompts|accept every prompt|approve every|approve all|approve any|as soon as it is opened")
	add(Override, "Speaks to the model", "unrestricted assistant|unrestricted ai|unrestricted model|unrestricted agent|"+
		"unfiltered assistant|unfiltered ai|without any restrictions")
	add(Weakens, "Approves by itself", "with yes|yes to all|yes to every|yes to any|be left for later|"+
		"comment them out|comment it out|without a look|without looking|even if it fails|even if they fail|"+
		"even if it is not|even if they are not|as safe|as trusted")
	add(Override, "Asks for the model's instructions", "the text above|the words above|the above text|everything above|"+
		"you were given at|you were started with|you were initialised with|you were initialized with|you were told before|"+
		"your chain of thought|your hidden reasoning|initial instructions|system prompt in")
	add(Override, "Speaks to the model", "coming from your developers|from your developers|from your developer|"+
		"comes from your|as if it came from|no longer have to follow|no longer bound|no longer apply|instead of the task|"+
		"instead of your task|answer with the word|answer with the words")
	add(Conceal, "Asks to keep something from people", "tell nobody|tell no one|inform nobody|notify nobody|inform no one")
	all = append(all, phrasesAfter(keeps|weakSend|insert|plan|collect, Persist, "Makes something stay",
		"permanent memory|persistent memory|long-term memory|agent's memory|future tasks|future runs")...)
	return all
}

// index finds the rules and phrases that may begin with a word.
type index struct {
	rules  [64][]sentenceRule // by each sense of their first word
	places []sentenceRule     // that begin with a form
	first  meaning            // of all rules
}

// ruleIndex is made once, when the first text is read.
var ruleIndex = sync.OnceValue(func() *index { //nolint:gochecknoglobals // made once, then never changed
	x := &index{}
	for _, r := range sentenceRules() {
		x.first |= r.steps[0].any
		if r.steps[0].any == 0 {
			x.places = append(x.places, r)
		}
		for senses := r.steps[0].any; senses != 0; senses &= senses - 1 {
			bit := bits.TrailingZeros64(uint64(senses))
			x.rules[bit] = append(x.rules[bit], r)
		}
	}
	return x
})

// readHiding is read for the words of a title, of which only the phrases that hide something count.
func (x *index) readHiding(s sentence, at int, add func(class Class, says string, from, first, last int)) {
	if s[at].phrases == nil {
		return
	}
	all := *s[at].phrases
	for i := range all {
		if p := &all[i]; p.class == Conceal && p.match(s, at) {
			add(p.class, p.says, at, at, at+len(p.words)-1)
		}
	}
}

// mayBegin says whether a rule or a phrase may begin with a word.
func (x *index) mayBegin(w *word) bool {
	return w.meaning&x.first != 0 || w.phrases != nil || w.form == secretWord || w.form == scriptWord
}

// read calls add with each rule and phrase that holds from a word of a sentence on, whose senses are given. Of a
// sentence in a list that forbids what it says, it leaves out the orders.
func (x *index) read(s sentence, in sentenceSenses, at int, forbidden bool,
	add func(class Class, says string, from, first, last int),
) {
	var order orderOnce
	if s[at].phrases != nil {
		all := *s[at].phrases
		for i := range all {
			p := &all[i]
			holds := !forbidden || p.class == Override || p.class == Conceal
			if holds && p.match(s, at) {
				add(p.class, p.says, at, at, at+len(p.words)-1)
			}
		}
	}
	if s[at].form == secretWord || s[at].form == scriptWord {
		for i := range x.places {
			rule := &x.places[i]
			if !rule.steps[0].holds(&s[at]) {
				continue
			}
			if first, last, ok := rule.match(s, at, &order); ok {
				add(rule.class, rule.says, first, at, last)
			}
		}
	}
	for senses := s[at].meaning & x.first; senses != 0; senses &= senses - 1 {
		bit := bits.TrailingZeros64(uint64(senses))
		for i := range x.rules[bit] {
			rule := &x.rules[bit][i]
			if !rule.mayHold(in) || rule.needsOrder() && !order.isOrder(s, at) {
				continue
			}
			common := rule.steps[0].any & s[at].meaning
			if bits.TrailingZeros64(uint64(common)) != bit || forbidden && rule.mood.asks() {
				continue // it is tried with the first sense that it shares with the word
			}
			if first, last, ok := rule.match(s, at, &order); ok {
				add(rule.class, rule.says, first, at, last)
			}
		}
	}
}
