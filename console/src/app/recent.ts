// Pages that the user has opened last. They are stored in this browser, for each user of the server.
import { me } from './session.ts'
import { keep, kept } from './settings.ts'

export type RecentPage = { href: string; title: string }

const most = 8
const name = `recent-${me.uid}`

/** Recently opened pages, the newest first. */
export function recentPages(): readonly RecentPage[] {
  try {
    const pages: unknown = JSON.parse(kept(name) || '[]')
    return Array.isArray(pages) ? pages.filter(isPage).slice(0, most) : []
  } catch {
    return []
  }
}

/** Stores a page as the newest one. Only pages of organizations and repositories are stored. */
export function notePage(href: string, title: string): void {
  if (!/^\/ui\/[gr]\/./.test(href)) return
  const others = recentPages().filter((one) => one.href !== href)
  keep(name, JSON.stringify([{ href, title }, ...others].slice(0, most)))
}

function isPage(one: unknown): one is RecentPage {
  const { href, title } = (one ?? {}) as Partial<RecentPage>
  return typeof href === 'string' && typeof title === 'string' && href.startsWith('/ui/')
}
