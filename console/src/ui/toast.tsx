// Short messages at the bottom of the page. They confirm an action. Errors stay where the action was.
import { signal } from '@preact/signals'
import { Icon } from './icon.tsx'

const shownMs = 5000

type Toast = { id: number; text: string }
const toasts = signal<readonly Toast[]>([])
let count = 0

/** Shows a message for five seconds. Screen readers read it. */
export function showToast(text: string): void {
  const toast = { id: ++count, text }
  toasts.value = [...toasts.value, toast]
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one !== toast)
  }, shownMs)
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text }) => (
        <div key={id} class="toast">
          <Icon name="check" />
          {text}
        </div>
      ))}
    </div>
  )
}
