// The rest of a list that only goes on from page to page.
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import { words } from '../words.ts'

const Page = createContext(1)

/** On which page of such a list something stands, from 1 on: two tables of one screen need two names. */
export const usePage = (): number => useContext(Page)

type Props = { next: string; label?: string; children: (after: string) => ComponentChildren }

/** A button for what comes behind `next`, and then that; nothing when there is no more. */
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

/** The button that was pressed is gone, so the focus goes to what it has brought. */
function Rest({ children }: { children: ComponentChildren }) {
  const start = useRef<HTMLDivElement>(null)
  useEffect(() => start.current?.focus({ preventScroll: true }), [])
  return (
    <div tabIndex={-1} ref={start}>
      {children}
    </div>
  )
}
