// Timeline of a tag, with a line for each digest. A bar shows when the tag pointed to the digest. Arrow keys move between bars.
// The table below has the same content as text.
import { useEffect, useRef, useState } from 'preact/hooks'
import { dayText, hex8, hourText, timeText } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { nextBar } from './bars.ts'
import type { Assignment } from './moves.ts'
import { whenText } from './when.tsx'

const lane = { height: 26, gap: 4, left: 4, width: 800, least: 560, label: 76 }
const maxLanes = 12
const twoDays = 2 * 86_400_000

type Props = {
  assignments: readonly Assignment[]
  at: number | undefined
  now: number
  /** Length of the shown time before now, in milliseconds. Longer if `at` is earlier. */
  range: number
  onPick: (stay: Assignment, isSecond: boolean) => void
}

export function Timeline({ assignments, at, now, range, onPick }: Props) {
  const [width, setWidth] = useState(lane.width)
  const from = Math.min(now - range, at ?? now)
  const inRange = assignments.filter(({ end = now }) => end >= from)
  const digests = [...new Set(inRange.map(({ digest }) => digest).reverse())].slice(0, maxLanes)
  const shown = inRange.filter(({ digest }) => digests.includes(digest))
  // Only one bar is a tab stop: the last one, or the bar that had the focus most recently.
  const [current, setCurrent] = useState(shown.length - 1)
  const box = useRef<HTMLDivElement>(null)
  // On a phone, the timeline scrolls sideways. It opens at the present time.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth
  }, [width])
  useEffect(() => {
    const { current: element } = box
    if (!element) return
    const watch = new ResizeObserver(() => setWidth(Math.max(lane.least, element.clientWidth - lane.label)))
    watch.observe(element)
    return () => watch.disconnect()
  }, [])
  const [first] = shown
  if (!first) return null
  const [start, end] = [Math.max(first.start, from), Math.max(now, at ?? 0)]
  const x = (time: number) =>
    lane.left + ((Math.max(time, start) - start) / Math.max(1, end - start)) * (width - lane.left - 60)
  const y = (digest: string) => 24 + digests.indexOf(digest) * (lane.height + lane.gap)
  const height = 44 + digests.length * (lane.height + lane.gap)
  const move = (event: KeyboardEvent) => {
    const to = nextBar(shown, current, event.key)
    if (to === undefined) return
    event.preventDefault()
    const bars = (event.currentTarget as Element).querySelectorAll<SVGGElement>('g[role=button]')
    setCurrent(to)
    bars[to]?.focus()
  }
  return (
    <div class="scroll timeline" ref={box}>
      <svg class="lanes" aria-hidden="true" width={lane.label} height={height}>
        {digests.map((digest) => (
          <text key={digest} x={0} y={y(digest) + 17}>
            {hex8(digest)}
          </text>
        ))}
      </svg>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing has no fieldset */}
      <svg
        role="group"
        aria-label={tagWords.timelineKeys}
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        onKeyDown={move}
      >
        <g>
          {marksOf(start, end).map(({ time, text }, i, marks) => (
            <g key={time}>
              <line class="mark" x1={x(time)} x2={x(time)} y1={18} y2={height} />
              <text class="when" x={x(time)} y={12} text-anchor={i > 0 && i === marks.length - 1 ? 'middle' : 'start'}>
                {text}
              </text>
            </g>
          ))}
        </g>
        {shown.slice(1).map((stay, i) => (
          <line
            key={stay.start}
            class="step"
            x1={x(stay.start)}
            x2={x(stay.start)}
            y1={y(shown[i]!.digest) + lane.height / 2}
            y2={y(stay.digest) + lane.height / 2}
          />
        ))}
        {shown.map((stay, i) => (
          <Bar
            key={stay.start}
            stay={stay}
            x={x}
            y={y(stay.digest)}
            end={end}
            isCurrent={i === Math.min(current, shown.length - 1)}
            isThen={at !== undefined && stay.start <= at && at < (stay.end ?? Number.POSITIVE_INFINITY)}
            onFocus={() => setCurrent(i)}
            onPick={onPick}
          />
        ))}
        {at !== undefined && (
          <>
            <line class="at" x1={x(at)} x2={x(at)} y1={16} y2={height - 16} />
            <text class="at-label" x={clamp(x(at), 70, width - 70)} y={height - 4} text-anchor="middle">
              {timeText(new Date(at).toISOString())}
            </text>
          </>
        )}
      </svg>
    </div>
  )
}

const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)

type BarProps = {
  stay: Assignment
  x: (time: number) => number
  y: number
  end: number
  isCurrent: boolean
  isThen: boolean
  onFocus: () => void
  onPick: Props['onPick']
}

function Bar({ stay, x, y, end, isCurrent, isThen, onFocus, onPick }: BarProps) {
  const { digest, start, end: until, move } = stay
  const [from, to] = [x(start), x(until ?? end)]
  const choose = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    onPick(stay, event.shiftKey)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing has no buttons of its own
    <g
      role="button"
      tabindex={isCurrent ? 0 : -1}
      aria-label={`${hex8(digest)}, ${whenText(move)}${until === undefined ? `, ${words.now}` : ''}`}
      aria-pressed={isThen}
      onFocus={onFocus}
      onKeyDown={choose}
      onClick={(event) => onPick(stay, event.shiftKey)}
    >
      <rect
        class={`bar-of-time${until === undefined ? ' now' : ''}${isThen ? ' chosen' : ''}`}
        x={from}
        y={y}
        width={Math.max(3, to - from)}
        height={lane.height}
      />
      {until === undefined && (
        <text class="when" x={to + 4} y={y + 17}>
          {words.now}
        </text>
      )}
      <title>{whenText(move)}</title>
    </g>
  )
}

/** At most five labels above the timeline: days, or hours of a short time. No label is repeated. */
function marksOf(start: number, end: number): { time: number; text: string }[] {
  const textOf = end - start < twoDays ? hourText : dayText
  const marks = [0, 1, 2, 3, 4]
    .map((i) => start + (i * (end - start)) / 4)
    .map((time) => ({ time, text: textOf(time) }))
  return marks.filter(({ text }, i) => text !== marks[i - 1]?.text)
}
