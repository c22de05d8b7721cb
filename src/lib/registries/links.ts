// Parser of Link headers (RFC 8288), which lead to the next page of a list.

const maxHeader = 16 * 1024

/**
 * Next page of a list, as the path `end` with a query. Undefined after the last page. Uses only the query of the link, so that
 * the link cannot lead to another host or path. Returns `lost` if the link leads to another path. Also returns `lost` if a part of
 * the header is not a link with a relation type, since that part may name the next page.
 */
export function nextPage(header: string, end: string): string | 'lost' | undefined {
  if (header.length > maxHeader) return 'lost'
  const { links, isComplete } = readLinks(header)
  const next = links.find(({ rel }) => rel.split(/\s+/).includes('next'))
  if (!next) return isComplete ? undefined : 'lost'
  const url = URL.parse(next.target, `https://registry.invalid/${end}`)
  if (!url?.pathname.endsWith(`/${end}`) || url.search === '') return 'lost'
  return `${end}${url.search}`
}

type Link = { target: string; rel: string }

/** A target, a parameter with or without a value, a comma, or any other character except blanks. */
const parts = /<([^<>]*)>|;\s*([\w*-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+)))?|(,)|(\S)/g

/**
 * Reads the links of a header. Commas and semicolons inside targets and quoted values are not separators. If a link has several
 * `rel`, the first one is used. `isComplete` is false if a part of the header is not a link, or if a link has no `rel`.
 */
function readLinks(header: string): { links: Link[]; isComplete: boolean } {
  const links: Link[] = []
  let isComplete = true
  for (const [, target, name, quoted, plain, comma, other] of header.matchAll(parts)) {
    const link = links.at(-1)
    if (target !== undefined) links.push({ target: target.trim(), rel: '' })
    else if (other !== undefined || (!link && comma === undefined)) isComplete = false
    else if (link?.rel === '' && name?.toLowerCase() === 'rel') link.rel = relationIn(quoted ?? plain ?? '')
  }
  return { links, isComplete: isComplete && links.every(({ rel }) => rel !== '') }
}

/** Relation types of a value. Some servers quote them with apostrophes, which the RFC does not allow. */
const relationIn = (value: string): string =>
  value
    .replace(/^'(.*)'$/s, '$1')
    .trim()
    .toLowerCase()
