// Tabs, which are links, and the segmented control, which are links or buttons.
import { useEffect, useRef } from 'preact/hooks'
import { numbers } from '../words.ts'

export type Tab = { label: string; href: string; isNow: boolean; count?: number }
type Props = { label: string; tabs: readonly Tab[]; isSegmented?: boolean }

export function Tabs({ label, tabs, isSegmented = false }: Props) {
  const bar = useRef<HTMLElement>(null)
  const now = tabs.findIndex(({ isNow }) => isNow)
  // Tabs that do not fit scroll sideways. Hidden tabs at the end have a fading edge.
  useEffect(() => {
    const tab = bar.current?.querySelector<HTMLElement>('[aria-current]')
    if (bar.current && tab) bar.current.scrollLeft = tab.offsetLeft - bar.current.offsetLeft - 48
  }, [now])
  useEffect(() => {
    const { current } = bar
    if (!current) return
    const mark = () => {
      const { scrollWidth, clientWidth, scrollLeft } = current
      current.toggleAttribute('data-more', scrollLeft + clientWidth < scrollWidth - 1)
    }
    const watch = new ResizeObserver(mark)
    watch.observe(current)
    current.addEventListener('scroll', mark, { passive: true })
    return () => watch.disconnect()
  }, [])
  return (
    <nav aria-label={label} class={isSegmented ? 'segmented' : 'tabs'} ref={bar}>
      {tabs.map(({ label: text, href, isNow, count }) => (
        <a key={href} href={href} aria-current={isNow ? 'page' : undefined}>
          {text}
          {count !== undefined && <span class="count"> {numbers(count)}</span>}
        </a>
      ))}
    </nav>
  )
}

type Choice = { value: string; label: string }
type SegmentedProps = { label: string; choices: readonly Choice[]; value: string; onChoose: (value: string) => void }

/** Choice of one value out of a few that are all visible. */
export function Segmented({ label, choices, value, onChoose }: SegmentedProps) {
  return (
    <fieldset class="segmented">
      <legend class="unseen">{label}</legend>
      {choices.map((one) => (
        <button key={one.value} type="button" aria-pressed={one.value === value} onClick={() => onChoose(one.value)}>
          {one.label}
        </button>
      ))}
    </fieldset>
  )
}
