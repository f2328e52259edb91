// Sphinx shows the pages that have every word of a query. Whoever pastes an error pastes names and numbers with it, which
// no page has, or one by chance. Then the pages with many of its words are shown. Each word counts, one in the title most,
// so that the page of that error comes first; to Sphinx only the best word of a page counts.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // only the page of the search has it
  const withEvery = Search.performTermsSearch;
  const ENOUGH = 5;
  const SCORE = 4; // where it stands in a result: [page, title, anchor, description, score, …]
  Search.performTermsSearch = (words, excluded) => {
    const found = withEvery(words, excluded);
    if (words.size < 2) return found;
    const every = new Set(found.map((result) => result[0]));
    const pages = new Map();
    for (const word of words)
      for (const result of withEvery(new Set([word]), excluded)) {
        const page = pages.get(result[0]) ?? { result: [...result], score: 0, words: 0 };
        page.words += 1;
        page.score += result[SCORE];
        pages.set(result[0], page);
      }
    if (every.size >= ENOUGH) for (const name of [...pages.keys()]) if (!every.has(name)) pages.delete(name);
    const most = Math.max(0, ...[...pages.values()].map((page) => page.words));
    return [...pages.values()]
      .filter((page) => page.words >= Math.max(most / 3, Math.min(most, 2)))
      .map((page) => page.result.with(SCORE, page.score));
  };
});
