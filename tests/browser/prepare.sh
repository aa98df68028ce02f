# Finds the program, the browser and Java, and installs the packages: what `test` and `screenshots` share.
checkout=$(cd ../.. && pwd)

# The first of these that can be run.
program() {
  for candidate; do
    if [ -x "$candidate" ]; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

POLYNYM_BIN=${POLYNYM_BIN:-$(program "$checkout/target/debug/polynym" "$checkout/target/dist/polynym")} || {
  echo "there is no polynym: build it (cargo build), or name it by POLYNYM_BIN" >&2
  exit 1
}
# Without the parts of a browser that nobody sees here, it takes less than half of the processor.
CHROMIUM=${CHROMIUM:-$(program /usr/bin/chromium-headless-shell /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome)} || {
  echo "there is no Chromium: install it (apt-get install chromium-headless-shell), or name it by CHROMIUM" >&2
  exit 1
}
if [ "${BROWSER:-}" = firefox ]; then
  FIREFOX=${FIREFOX:-$(program /usr/bin/firefox-esr /usr/bin/firefox)} || {
    echo "there is no Firefox: install it (apt-get install firefox-esr), or name it by FIREFOX" >&2
    exit 1
  }
  export FIREFOX
fi
export POLYNYM_BIN CHROMIUM
export npm_config_cache="$checkout/target/npm" npm_config_audit=false npm_config_fund=false
export npm_config_update_notifier=false

# Installs the packages of a folder, if their list is newer. Their install scripts download what the tests do not use.
packages() {
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] || (cd "$1" && npm ci --ignore-scripts --silent)
}
packages .
packages "$checkout/clients/web"
