// Frame of a screen: header with breadcrumb, title, actions and tabs.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { openPalette } from '../app/palette.ts'
import { paths } from '../app/paths.ts'
import { notePage } from '../app/recent.ts'
import { here } from '../app/route.ts'
import { isUtc } from '../app/settings.ts'
import { uidPart } from '../data/names.ts'
import { words } from '../words.ts'
import { Icon } from './icon.tsx'
import { type Tab, Tabs } from './tabs.tsx'

type Crumb = { label: string; href: string }
type Props = {
  title: string
  /** Links of the breadcrumb. A screen without them has its title in the header. */
  trail?: readonly Crumb[]
  /** Last part of the breadcrumb, if it is shorter than the title. */
  crumb?: string
  tabs?: readonly Tab[]
  /** Tabs within a tab. */
  subTabs?: readonly Tab[]
  /** Buttons beside the title. */
  actions?: ComponentChildren
  /** Further names in the title of the document. */
  documentTitle?: readonly string[]
  children: ComponentChildren
}

/** The heading gets the focus on each new screen, so that screen readers read it. */
export function Screen({ title, trail = [], crumb = title, tabs = [], subTabs = [], actions, ...props }: Props) {
  const heading = useRef<HTMLHeadingElement>(null)
  const { documentTitle = [title, ...trail.map(({ label }) => label).reverse()], children } = props
  const fullTitle = [...documentTitle, words.product].join(' · ')
  useEffect(() => {
    document.title = fullTitle
    notePage(here().pathname, documentTitle.join(' · '))
    if (document.activeElement === document.body || document.activeElement?.closest('main') === null) {
      if (document.activeElement?.closest('search') === null) heading.current?.focus({ preventScroll: true })
    }
  }, [fullTitle])
  const shownTitle = (
    <h1 tabIndex={-1} ref={heading}>
      <bdi>{title}</bdi>
    </h1>
  )
  const buttons = actions !== undefined && <div class="actions">{actions}</div>
  return (
    <>
      <div class="bar">
        <button type="button" class="ghost icon-button phone" popovertarget="side" aria-label={words.openMenu}>
          <Icon name="menu" />
        </button>
        {trail.length > 0 ? <Trail crumbs={trail} current={crumb} /> : shownTitle}
        <span class="note">{isUtc.value ? words.timesInUtc : words.timesInLocal}</span>
        {trail.length === 0 && buttons}
        <button
          type="button"
          class="ghost icon-button phone"
          aria-haspopup="dialog"
          aria-label={words.openSearch}
          onClick={() => openPalette()}
        >
          <Icon name="search" />
        </button>
      </div>
      <div class="content">
        {trail.length === 0 && actions !== undefined && <div class="actions narrow-actions">{actions}</div>}
        {trail.length > 0 && (
          <div class="title">
            {shownTitle}
            {buttons}
          </div>
        )}
        {tabs.length > 1 && <Tabs label={words.views} tabs={tabs} />}
        {subTabs.length > 1 && <Tabs label={words.subViews} tabs={subTabs} isSegmented />}
        {children}
      </div>
    </>
  )
}

function Trail({ crumbs, current }: { crumbs: readonly Crumb[]; current: string }) {
  return (
    <nav aria-label={words.trail} class="trail">
      <ol>
        {crumbs.map(({ label, href }) => (
          <li key={href}>
            <a href={href}>
              <bdi>{label}</bdi>
            </a>
            <Icon name="next" />
          </li>
        ))}
        <li>
          <span aria-current="page">
            <bdi>{current}</bdi>
          </span>
        </li>
      </ol>
    </nav>
  )
}

/** Breadcrumb for the names on a path. The last name is left out. */
export function trailOf(names: readonly string[]): Crumb[] {
  return names.slice(0, -1).map((name, i) => {
    const at = names.slice(0, i + 1)
    return { label: nameOf(name), href: i === 0 ? paths.group(at, 'repositories') : paths.group(at) }
  })
}

/** Text for a name in an address. If the user cannot see the name, the text is the uid. */
export function nameOf(name: string): string {
  return name.startsWith(uidPart('')) ? words.noAccess : name
}
