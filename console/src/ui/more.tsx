// The rest of a list that only goes on from page to page.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { words } from '../words.ts'

/** A button for what comes behind `next`, and then that; nothing when there is no more. */
export function More({ next, children }: { next: string; children: (after: string) => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false)
  if (next === '') return null
  if (isOpen) return <>{children(next)}</>
  return (
    <p>
      <button type="button" onClick={() => setOpen(true)}>
        {words.showMore}
      </button>
    </p>
  )
}
