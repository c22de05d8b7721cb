// Link headers of lists (RFC 8288): where the next page is.

const maxHeader = 16 * 1024

/**
 * Next page of a list whose path ends with `end`, as that end with a query; undefined after the last page. Only the query of a
 * link is used, so that it leads to no other path or host. Returns `lost` if the next page is elsewhere.
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

/** Commas and semicolons in targets and in quoted values separate nothing. The first `rel` of a link counts. */
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
