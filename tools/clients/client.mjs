// A client of `paddle-rope serve`, for Node.js 18 or newer:
//   node tools/clients/client.mjs http://127.0.0.1:8080/predict 浙商银行企业信贷部叶老桂博士
// The key is taken from the variable API_KEY. A browser needs a page of the same origin: the service sends no CORS headers.

export async function predict(url, texts, {key = "", tries = 5, ...options} = {}) {
  const headers = {"Content-Type": "application/json", Authorization: `Bearer ${key}`}
  const body = JSON.stringify({texts, ...options})
  for (let left = tries - 1; ; left--) {
    const response = await fetch(url, {method: "POST", headers, body, signal: AbortSignal.timeout(60_000)})
    const answer = await response.json()
    if (response.ok) return answer.results
    if (response.status !== 503 || !left) throw new Error(`${response.status}: ${answer.error}`)
    await new Promise(resolve => setTimeout(resolve, 1000 * (response.headers.get("Retry-After") ?? 1)))
  }
}

const [url, ...texts] = process.argv.slice(2)
for (const {text, entities} of await predict(url, texts, {key: process.env.API_KEY})) {
  const characters = [...text]  // offsets count code points, a string UTF-16 units
  for (const {type, start, end} of entities) console.log(type, characters.slice(start, end).join(""), start, end)
}
