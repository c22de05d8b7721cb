// Panel of the overview: a title, a link to the list, and the content.
import type { ComponentChildren } from 'preact'

type Props = {
  title: string
  link?: { text: string; href: string }
  isWide?: boolean
  children: ComponentChildren
}

export function Panel({ title, link, isWide = false, children }: Props) {
  return (
    <section class={isWide ? 'panel wide' : 'panel'}>
      <header>
        <h2>{title}</h2>
        {link && <a href={link.href}>{link.text}</a>}
      </header>
      {children}
    </section>
  )
}
