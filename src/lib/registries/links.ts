// Parser of Link headers (RFC 8288), which lead to the next page of a list.

const maxHeader = 16 * 1024

/**
 * Next page of a list, as the path `end` with a query. Undefined after the last page. Uses only the query of the link, so that
 * the link cannot lead to another host or path. Returns `lost` if the link leads to another path.
 */
export function nextPage(header: string, end: string): string | 'lost' | undefined {
  if (header.length > maxHeader) return 'lost'
  for (const { target, rel } of readLinks(header)) {
    if (!rel.split(/\s+/).includes('next')) continue
    const url = URL.parse(target, `https://registry.invalid/${end}`)
    if (!url?.pathname.endsWith(`/${end}`) || url.search === '') return 'lost'
    return `${end}${url.search}`
  }
  return undefined
}

type Link = { target: string; rel: string }

/**
 * Reads the links of a header. Commas and semicolons inside targets and quoted values are not separators. If a link has several
 * `rel`, the first one is used.
 */
function readLinks(header: string): Link[] {
  const links: Link[] = []
  const parts = /<([^<>]*)>|;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))/gi
  for (const [, target, name, quoted, plain] of header.matchAll(parts)) {
    const link = links.at(-1)
    if (target !== undefined) links.push({ target: target.trim(), rel: '' })
    else if (link?.rel === '' && name!.toLowerCase() === 'rel') link.rel = (quoted ?? plain ?? '').trim().toLowerCase()
  }
  return links
}
