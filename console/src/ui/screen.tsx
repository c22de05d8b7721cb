// Frame of a screen: title, breadcrumb and tabs.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { paths } from '../app/paths.ts'
import { uidPart } from '../data/names.ts'
import { words } from '../words.ts'

type Tab = { label: string; href: string; isNow: boolean }
type Props = {
  title: string
  /** Links of the breadcrumb. */
  trail?: readonly { label: string; href: string }[]
  tabs?: readonly Tab[]
  intro?: ComponentChildren
  children: ComponentChildren
}

/** The heading gets the focus on each new screen, so that screen readers read it. */
export function Screen({ title, trail = [], tabs = [], intro, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} – ${words.product}`
    if (document.activeElement === document.body || document.activeElement?.closest('main') === null) {
      if (document.activeElement?.closest('header') === null) heading.current?.focus({ preventScroll: true })
    }
  }, [title])
  return (
    <>
      {trail.length > 0 && (
        <nav aria-label={words.trail} class="trail">
          <ol>
            {trail.map(({ label, href }) => (
              <li key={href}>
                <a href={href}>
                  <bdi>{label}</bdi>
                </a>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <h1 tabIndex={-1} ref={heading}>
        <bdi>{title}</bdi>
      </h1>
      {intro}
      {tabs.length > 0 && (
        <nav aria-label={words.views} class="tabs">
          {tabs.map(({ label, href, isNow }) => (
            <a key={href} href={href} aria-current={isNow ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
      )}
      {children}
    </>
  )
}

/** Breadcrumb for the names on a path. The last name is left out. */
export function trailOf(names: readonly string[]): { label: string; href: string }[] {
  const above = names.slice(0, -1).map((name, i) => ({ label: nameOf(name), href: paths.group(names.slice(0, i + 1)) }))
  return [{ label: words.organizations, href: paths.organizations }, ...above]
}

/** Text for a name in an address. If the user cannot see the name, the text is the uid. */
export function nameOf(name: string): string {
  return name.startsWith(uidPart('')) ? words.noAccess : name
}
