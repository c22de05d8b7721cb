// Tabs, which are links, and the segmented control, which are links or buttons.
import { useEffect, useRef } from 'preact/hooks'
import { numbers } from '../words.ts'

export type Tab = { label: string; href: string; isNow: boolean; count?: number }
type Props = { label: string; tabs: readonly Tab[]; isSegmented?: boolean }

export function Tabs({ label, tabs, isSegmented = false }: Props) {
  const bar = useRef<HTMLElement>(null)
  const now = tabs.findIndex(({ isNow }) => isNow)
  // On a phone, the tabs scroll sideways.
  useEffect(() => {
    const tab = bar.current?.querySelector<HTMLElement>('[aria-current]')
    if (bar.current && tab) bar.current.scrollLeft = tab.offsetLeft - bar.current.offsetLeft - 48
  }, [now])
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
