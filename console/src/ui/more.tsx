// Button that loads the next page of a list without page numbers.
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import { words } from '../words.ts'

const Page = createContext(1)

/** Number of the page, from 1. It is part of the table's accessible name, so that each table on a screen has its own name. */
export const usePage = (): number => useContext(Page)

type Props = { next: string; label?: string; children: (after: string) => ComponentChildren }

/** Button that is replaced by the next page when it is pressed. Shows nothing if there is no next page. */
export function More({ next, label = words.showMore, children }: Props) {
  const [isOpen, setOpen] = useState(false)
  const page = usePage() + 1
  if (next === '') return null
  if (!isOpen) {
    return (
      <p>
        <button type="button" onClick={() => setOpen(true)}>
          {label}
        </button>
      </p>
    )
  }
  return (
    <Page.Provider value={page}>
      <Rest>{children(next)}</Rest>
    </Page.Provider>
  )
}

/** The pressed button is removed, so the new page gets the focus. */
function Rest({ children }: { children: ComponentChildren }) {
  const start = useRef<HTMLDivElement>(null)
  useEffect(() => start.current?.focus({ preventScroll: true }), [])
  return (
    <div tabIndex={-1} ref={start}>
      {children}
    </div>
  )
}
