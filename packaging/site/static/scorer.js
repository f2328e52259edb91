// Who searches for the text of an error, or for a key, wants the page about it before those that have the words, too.
var Scorer = { // no `const`: searchtools.js declares it, too
  score: ([page, title, anchor, description, score]) => score + (/^(symptoms|keys|annotations)\//.test(page) ? 6 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
