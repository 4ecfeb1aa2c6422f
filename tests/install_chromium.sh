#!/bin/sh
# Installs Chromium for the tests of the report page, where there is none and it can be had;
# else says why not. The tests that need it are skipped then.
for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable chrome}; do
    command -v "$name" >/dev/null && exit 0
done
without="the report page will not be tested in a browser"
if ! command -v apt-get >/dev/null; then
    echo "no Chromium, and no apt-get to install it with: $without"
elif [ "$(id -u)" -ne 0 ]; then
    echo "no Chromium, and only root may install it (apt-get install chromium): $without"
else
    echo "installing Chromium for the tests of the report page"
    apt="apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20"
    { $apt update && DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends chromium; } \
        >/dev/null 2>&1 || echo "Chromium could not be installed: $without"
fi
exit 0
